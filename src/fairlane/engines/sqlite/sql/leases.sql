-- name: held
SELECT task.number, task.lane, task.level, task.timeout
FROM held CROSS JOIN content AS task ON task.number = held.number
WHERE held.task_id = ? AND held.attempt = ? AND held.worker_id = ?;

-- name: start
UPDATE held SET started_at = ?, deadline = ? WHERE task_id = ?;

-- name: start_if_unstarted
UPDATE held SET started_at = ?, deadline = ? WHERE task_id = ? AND started_at IS NULL;

-- name: progress
UPDATE content SET progress = ? WHERE number = ?;

-- name: exists
SELECT EXISTS (SELECT 1 FROM content WHERE task_id = ?);

-- name: worker
SELECT status, lease FROM workers WHERE worker_id = ?;

-- name: shortest_lease
SELECT min(lease) FROM workers WHERE status <> 'dead';

-- name: beat
UPDATE workers
SET seen_at = ?2,
    load = coalesce(?3, load),
    status = ?4,
    health = coalesce(?5, health)
WHERE worker_id = ?1;

-- name: lingering
SELECT task_id, attempt FROM lingering WHERE worker_id = ? ORDER BY task_id LIMIT ?;

-- name: lost
SELECT
    task.task_id, held.attempt, held.worker_id, lane.type, 'lost', held.started_at IS NOT NULL,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM held
CROSS JOIN content AS task ON task.number = held.number
LEFT JOIN workers AS worker ON worker.worker_id = held.worker_id
CROSS JOIN lanes AS lane ON lane.id = task.lane
WHERE worker.worker_id IS NULL OR worker.status = 'dead'
LIMIT ?;

-- name: timed_out
SELECT
    task.task_id, held.attempt, held.worker_id, lane.type, 'timeout', 1,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM held
CROSS JOIN content AS task ON task.number = held.number
CROSS JOIN workers AS worker ON worker.worker_id = held.worker_id
CROSS JOIN lanes AS lane ON lane.id = task.lane
WHERE
    held.deadline <= ?1
    AND held.deadline - held.started_at <= ?1 - ?2
    AND worker.status <> 'dead'
ORDER BY held.deadline
LIMIT ?3;

-- name: unstarted
SELECT
    task.task_id, held.attempt, held.worker_id, lane.type, 'unstarted', 0,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM held
CROSS JOIN content AS task ON task.number = held.number
CROSS JOIN workers AS worker ON worker.worker_id = held.worker_id
CROSS JOIN lanes AS lane ON lane.id = task.lane
WHERE
    held.started_at IS NULL
    AND max(held.claimed_at, ?2) + worker.start_within <= ?1
    AND worker.status <> 'dead'
ORDER BY held.claimed_at
LIMIT ?3;

-- name: register
INSERT INTO workers (
    worker_id, status, capacity, capabilities, queues, types, host, version, lease, start_within,
    registered_at, seen_at, load
)
VALUES (?1, 'active', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11)
ON CONFLICT DO UPDATE SET
    capacity = excluded.capacity,
    capabilities = excluded.capabilities,
    queues = excluded.queues,
    types = excluded.types,
    host = excluded.host,
    version = excluded.version,
    lease = excluded.lease,
    start_within = excluded.start_within,
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
SELECT EXISTS (SELECT 1 FROM held WHERE worker_id = ?);

-- name: remove
DELETE FROM workers WHERE worker_id = ?;
