-- name: held
SELECT task.rowid, task.task_id, task.attempt, task.lane, task.level, task.state, task.worker_id,
    task.started_at
FROM json_each(?) AS wanted
CROSS JOIN tasks AS task ON task.task_id = wanted.value
WHERE task.state = 3;

-- name: still_overdue
SELECT task.rowid, task.task_id, task.attempt, task.lane, task.level, task.state, task.worker_id,
    task.started_at
FROM json_each(?1) AS wanted
CROSS JOIN tasks AS task ON task.task_id = wanted.value
LEFT JOIN workers AS worker ON worker.worker_id = task.worker_id
WHERE
    task.state = 3
    AND (worker.worker_id IS NULL OR worker.status = 'dead' OR task.deadline <= ?2);

-- name: complete
UPDATE tasks
SET state = 5,
    started_at = ?,
    completed_at = ?,
    updated_at = ?2,
    version = version + 1,
    deadline = NULL,
    error = NULL,
    result = ?
WHERE rowid = ?;

-- name: end
UPDATE tasks
SET state = ?1,
    started_at = ?2,
    completed_at = ?3,
    updated_at = ?3,
    version = version + 1,
    due_at = NULL,
    deadline = NULL,
    retry_count = coalesce(?4, retry_count),
    returns = coalesce(?5, returns),
    error = ?6
WHERE rowid = ?7;

-- name: give_back
UPDATE tasks
SET state = ?1,
    due_at = ?2,
    ready_at = coalesce(?3, ready_at),
    run_at = coalesce(?3, run_at),
    retry_count = ?4,
    returns = ?5,
    timeout = ?6,
    error = ?7,
    updated_at = ?8,
    version = version + 1,
    worker_id = NULL,
    claimed_at = NULL,
    started_at = NULL,
    deadline = NULL,
    progress = NULL
WHERE rowid = ?9;

-- name: record_attempt
INSERT INTO attempts (task_id, attempt, worker_id, started_at, ended_at, outcome, error)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: linger
INSERT INTO lingering (worker_id, task_id, attempt, lane) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: let_go
DELETE FROM lingering WHERE worker_id = ? AND task_id = ? AND attempt = ?;
