-- Zero and '' stand for NULL below: the driver binds them several times faster than None.

-- name: newest
SELECT (SELECT max(number) FROM content), (SELECT max(task_id) FROM content);

-- name: fences
SELECT value, id FROM documents
WHERE kind = ? AND id IN (SELECT value FROM json_each(?)) AND expires_at > ?;

-- name: go_on_ready
UPDATE ready SET attempt = CAST(?1 AS INTEGER)
FROM content AS task
WHERE
    task.task_id = ?2
    AND ready.lane = task.lane AND ready.level = task.level
    AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id;

-- name: go_on_waiting
UPDATE waiting SET attempt = CAST(?1 AS INTEGER)
WHERE number = (SELECT number FROM content WHERE task_id = ?2);

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
