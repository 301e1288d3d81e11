-- name: held
SELECT task.number, task.task_id, task.lane, task.level, task.ready_at, 3, held.attempt,
    held.retry_count, held.version, held.worker_id, held.claimed_at, held.started_at
FROM json_each(?) AS wanted
CROSS JOIN content AS task ON task.task_id = wanted.value
CROSS JOIN held ON held.number = task.number;

-- name: still_overdue
SELECT task.number, task.task_id, task.lane, task.level, task.ready_at, 3, held.attempt,
    held.retry_count, held.version, held.worker_id, held.claimed_at, held.started_at
FROM json_each(?1) AS wanted
CROSS JOIN content AS task ON task.task_id = wanted.value
CROSS JOIN held ON held.number = task.number
LEFT JOIN workers AS worker ON worker.worker_id = held.worker_id
WHERE worker.worker_id IS NULL OR worker.status = 'dead' OR held.deadline <= ?2;

-- name: complete
INSERT INTO outcome (
    number, attempt, retry_count, version, state, worker_id, claimed_at, started_at, completed_at,
    result
)
SELECT number, attempt, retry_count, version + 1, 5, worker_id, claimed_at,
    coalesce(nullif(?1, 0), started_at), ?2, ?3
FROM held WHERE number = ?4;

-- name: leave_held
DELETE FROM held WHERE number IN (SELECT value FROM json_each(?));

-- name: forget_errors
UPDATE content SET error = NULL WHERE number = ?;

-- name: let_go
DELETE FROM lingering WHERE worker_id = ? AND task_id = ? AND attempt = ?;
