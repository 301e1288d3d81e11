-- name: worker
SELECT status, request_id, claimed_at, seen_at, lease FROM workers WHERE worker_id = ?;

-- name: seen
UPDATE workers SET seen_at = ?, request_id = ?, claimed_at = ? WHERE worker_id = ?;

-- name: due
SELECT task_id, lane, level, attempt, state FROM tasks
WHERE due_at <= ?
ORDER BY due_at, task_id
LIMIT ?;

-- name: make_ready
UPDATE tasks SET state = 2, due_at = NULL, updated_at = ?, version = version + 1 WHERE task_id = ?;

-- name: expiring
SELECT rowid, task_id, attempt, lane, level, state, worker_id, started_at FROM tasks
WHERE expires_at <= ? AND expires_at IS NOT NULL AND state IN (1, 2, 4)
ORDER BY expires_at
LIMIT ?;

-- name: next_due
SELECT min(due_at) FROM tasks WHERE due_at IS NOT NULL;

-- name: streams
SELECT lane, level FROM streams WHERE depth > 0;

-- name: stream
SELECT ready_at, task_id FROM tasks INDEXED BY tasks_ready
WHERE state = 2 AND lane = ? AND level = ?
ORDER BY ready_at, task_id;

-- name: take_stream
UPDATE tasks
SET state = 3,
    attempt = attempt + 1,
    worker_id = ?1,
    claimed_at = ?2,
    updated_at = ?2,
    version = version + 1
WHERE task_id IN (
    SELECT task_id FROM tasks INDEXED BY tasks_ready
    WHERE state = 2 AND lane = ?3 AND level = ?4
    ORDER BY ready_at, task_id
    LIMIT ?5
)
RETURNING
    task_id, attempt, lane, level, payload, retry_count, max_retries, returns, timeout,
    created_at, ready_at, spec;

-- name: take_tasks
UPDATE tasks
SET state = 3,
    attempt = attempt + 1,
    worker_id = ?1,
    claimed_at = ?2,
    updated_at = ?2,
    version = version + 1
WHERE task_id IN (SELECT value FROM json_each(?3))
RETURNING
    task_id, attempt, lane, level, payload, retry_count, max_retries, returns, timeout,
    created_at, ready_at, spec;

-- name: granted
SELECT
    task_id, attempt, lane, level, payload, retry_count, max_retries, returns, timeout,
    created_at, ready_at, spec
FROM tasks
WHERE state = 3 AND worker_id = ? AND claimed_at = ?;

-- name: held
SELECT lane, count(*) FROM tasks WHERE state = 3 GROUP BY lane
UNION ALL
SELECT lane, count(*) FROM lingering GROUP BY lane;

-- name: buckets
SELECT type, tokens, at FROM buckets WHERE type IN (SELECT value FROM json_each(?));

-- name: fill_bucket
INSERT INTO buckets (type, tokens, at) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET tokens = excluded.tokens, at = excluded.at;
