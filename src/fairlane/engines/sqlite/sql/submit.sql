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

-- name: ready_unless_waiting
INSERT INTO ready (
    lane, level, ready_at, task_id, number, attempt, retry_count, version, updated_at
)
SELECT lane, level, ready_at, task_id, number, 0, 0, 1, created_at
FROM content
WHERE number > ? AND run_at <= ?
    AND NOT EXISTS (SELECT 1 FROM waiting WHERE waiting.number = content.number);

-- name: waiting
INSERT INTO waiting (
    number, attempt, retry_count, version, updated_at, state, due_at, task_id, lane, level
)
VALUES (?, 0, 0, 1, ?, SCHEDULED, ?, ?, ?, ?);

-- name: expiry
INSERT INTO expiries (expires_at, number) VALUES (?, ?);
