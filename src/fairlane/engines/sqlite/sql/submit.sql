-- Zero and '' stand for NULL below: the driver binds them several times faster than None.

-- name: insert
INSERT INTO tasks (
    task_id, lane, level, state, ready_at, due_at, created_at, run_at, expires_at, attempt,
    retry_count, max_retries, returns, timeout, updated_at, version, payload, spec, idempotency_key
)
VALUES (
    ?, ?, ?, ?, ?, nullif(?, 0), ?, ?, nullif(?, 0), 0,
    0, ?, 0, nullif(?, 0), ?7, 1, ?, nullif(?, ''), nullif(?, '')
);

-- name: newest
SELECT max(task_id) FROM tasks;

-- name: stored
SELECT task_id, state, created_at FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: keys
SELECT idempotency_key, task_id, fingerprint FROM idempotency_keys
WHERE idempotency_key IN (SELECT value FROM json_each(?)) AND expires_at > ?;

-- name: take_key
INSERT INTO idempotency_keys (idempotency_key, task_id, fingerprint, expires_at)
VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    task_id = excluded.task_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at;
