-- name: pause_everything
UPDATE catalogue SET paused = ?;

-- name: pause_queue
INSERT INTO paused_queues (queue) VALUES (?) ON CONFLICT DO NOTHING;

-- name: resume_queue
DELETE FROM paused_queues WHERE queue = ?;

-- name: pause_type
INSERT INTO types (type, paused) VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused;

-- name: rate_everything
UPDATE catalogue SET rate = ?;

-- name: limit_type
INSERT INTO types (type, rate, concurrency) VALUES (?1, coalesce(?2, 0), coalesce(?3, 0))
ON CONFLICT DO UPDATE SET rate = coalesce(?2, rate), concurrency = coalesce(?3, concurrency);

-- name: standing
SELECT task_id, state, attempt, lane, level, worker_id, started_at
FROM tasks WHERE task_id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT task_id, state, attempt, lane, level, worker_id, started_at
FROM finished WHERE task_id IN (SELECT value FROM json_each(?1));

-- name: requeue
UPDATE tasks
SET state = 2,
    due_at = NULL,
    ready_at = ?2,
    level = coalesce(?3, level),
    retry_count = CASE WHEN ?4 THEN 0 ELSE retry_count END,
    returns = 0,
    expires_at = CASE WHEN expires_at <= ?2 THEN NULL ELSE expires_at END,
    error = NULL,
    updated_at = ?2,
    version = version + 1
WHERE task_id = ?1;

-- name: revive
INSERT INTO tasks (
    task_id, lane, level, state, ready_at, created_at, run_at, expires_at, attempt, retry_count,
    max_retries, returns, timeout, updated_at, version, payload, spec, idempotency_key
)
SELECT
    task_id, lane, coalesce(?3, level), 2, ?2, created_at, run_at,
    CASE WHEN expires_at <= ?2 THEN NULL ELSE expires_at END,
    attempt, CASE WHEN ?4 THEN 0 ELSE retry_count END,
    max_retries, 0, timeout, ?2, version + 1, payload, spec, idempotency_key
FROM finished WHERE task_id = ?1;

-- name: unfinish
DELETE FROM finished WHERE task_id = ?;
