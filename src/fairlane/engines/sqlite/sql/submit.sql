-- Zero and '' stand for NULL below: the driver binds them several times faster than None.

-- name: newest
SELECT (SELECT max(number) FROM content), (SELECT max(task_id) FROM content);

-- name: content
INSERT INTO content (
    number, task_id, lane, level, created_at, run_at, ready_at, expires_at, max_retries, timeout,
    payload, spec, idempotency_key
)
VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, 0), ?, nullif(?, 0), ?, nullif(?, ''), nullif(?, ''));

-- name: ready
INSERT INTO ready (
    lane, level, ready_at, task_id, number, attempt, retry_count, version, updated_at
)
SELECT lane, level, ready_at, task_id, number, 0, 0, 1, created_at
FROM content WHERE number > ? AND run_at <= ?;

-- name: waiting
INSERT INTO waiting (number, attempt, retry_count, version, updated_at, state, due_at)
VALUES (?, 0, 0, 1, ?, 1, ?);

-- name: expiry
INSERT INTO expiries (expires_at, number) VALUES (?, ?);

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
