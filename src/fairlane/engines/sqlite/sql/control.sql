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
SELECT rowid, task_id, attempt, lane, level, state, worker_id, started_at
FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: requeue
UPDATE tasks
SET state = 2,
    due_at = NULL,
    ready_at = ?2,
    level = ?3,
    retry_count = CASE WHEN ?4 THEN 0 ELSE retry_count END,
    returns = 0,
    expires_at = CASE WHEN expires_at <= ?2 THEN NULL ELSE expires_at END,
    updated_at = ?2,
    version = version + 1,
    worker_id = NULL,
    claimed_at = NULL,
    started_at = NULL,
    completed_at = NULL,
    error = NULL,
    progress = NULL
WHERE rowid = ?1;
