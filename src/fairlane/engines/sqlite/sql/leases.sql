-- name: start
UPDATE tasks
SET started_at = ?4,
    deadline = ?4 + CAST(timeout * 1000000 AS INTEGER)
WHERE task_id = ?1 AND attempt = ?2 AND worker_id = ?3 AND state = 3
RETURNING lane, level;

-- name: progress
UPDATE tasks
SET progress = ?4,
    updated_at = ?5
WHERE task_id = ?1 AND attempt = ?2 AND worker_id = ?3 AND state = 3
RETURNING lane, level;

-- name: exists
SELECT EXISTS (SELECT 1 FROM tasks WHERE task_id = ?);

-- name: worker
SELECT status, lease FROM workers WHERE worker_id = ?;

-- name: beat
UPDATE workers
SET seen_at = ?2,
    load = ?3,
    status = ?4,
    health = coalesce(?5, health)
WHERE worker_id = ?1;

-- name: lingering
SELECT task_id, attempt FROM lingering WHERE worker_id = ? ORDER BY task_id LIMIT ?;

-- name: lost
SELECT
    task.task_id, task.attempt, task.worker_id, 'lost', task.started_at IS NOT NULL,
    task.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM workers AS worker
CROSS JOIN tasks AS task ON task.worker_id = worker.worker_id AND task.state = 3
WHERE worker.status = 'dead'
LIMIT ?;

-- name: timed_out
SELECT
    task.task_id, task.attempt, task.worker_id, 'timeout', 1,
    task.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM tasks AS task
CROSS JOIN workers AS worker ON worker.worker_id = task.worker_id
WHERE task.deadline <= ? AND worker.status <> 'dead'
ORDER BY task.deadline
LIMIT ?;

-- name: register
INSERT INTO workers (
    worker_id, status, capacity, capabilities, queues, types, host, version, lease,
    registered_at, seen_at
)
VALUES (?1, 'active', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT DO UPDATE SET
    capacity = excluded.capacity,
    capabilities = excluded.capabilities,
    queues = excluded.queues,
    types = excluded.types,
    host = excluded.host,
    version = excluded.version,
    lease = excluded.lease,
    seen_at = excluded.seen_at;

-- name: mark
UPDATE workers SET status = ?2 WHERE worker_id = ?1 AND status <> 'dead';

-- name: bury
UPDATE workers SET status = 'dead'
WHERE worker_id = ?1 AND status <> 'dead' AND seen_at + lease <= ?2;

-- name: declare_dead
UPDATE workers SET status = 'dead' WHERE worker_id = ?;

-- name: drop_lingering
DELETE FROM lingering WHERE worker_id = ?;

-- name: holds
SELECT EXISTS (SELECT 1 FROM tasks WHERE state = 3 AND worker_id = ?);

-- name: remove
DELETE FROM workers WHERE worker_id = ?;
