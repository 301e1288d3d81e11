-- name: held
SELECT held.task_id, held.number, held.lane, held.level, held.attempt, held.retry_count,
    held.version, held.worker_id, held.claimed_at, held.started_at
FROM json_each(?) AS wanted
CROSS JOIN held ON held.task_id = wanted.value;

-- name: held_range
SELECT task_id, number, lane, level, attempt, retry_count, version, worker_id, claimed_at,
    started_at
FROM held WHERE task_id BETWEEN ? AND ? LIMIT ?;

-- name: still_overdue
SELECT held.task_id, held.number, held.lane, held.level, held.attempt, held.retry_count,
    held.version, held.worker_id, held.claimed_at, held.started_at
FROM json_each(?1) AS wanted
CROSS JOIN held ON held.task_id = wanted.value
LEFT JOIN workers AS worker ON worker.worker_id = held.worker_id
WHERE
    worker.worker_id IS NULL
    OR worker.status = 'dead'
    OR held.deadline <= ?2
    OR (held.started_at IS NULL AND held.claimed_at + worker.start_within <= ?2);

-- name: complete
INSERT INTO outcome (
    number, attempt, retry_count, version, state, worker_id, claimed_at, started_at, completed_at,
    result
)
VALUES (?, ?, ?, ?, COMPLETED, ?, ?, nullif(?, 0), ?, ?);

-- name: leave_held
DELETE FROM held WHERE task_id IN (SELECT value FROM json_each(?));

-- name: leave_held_range
DELETE FROM held WHERE task_id BETWEEN ? AND ?;

-- name: forget_errors
UPDATE content SET error = NULL WHERE number = ?;

-- name: let_go
DELETE FROM lingering WHERE worker_id = ? AND task_id = ? AND attempt = ?;
