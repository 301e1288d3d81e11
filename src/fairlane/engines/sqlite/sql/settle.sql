-- name: give_back
UPDATE tasks
SET state = ?4,
    due_at = ?5,
    ready_at = coalesce(?6, ready_at),
    run_at = coalesce(?6, run_at),
    retry_count = ?7,
    returns = ?8,
    timeout = ?9,
    error = ?10,
    updated_at = ?11,
    version = version + 1,
    worker_id = NULL,
    claimed_at = NULL,
    started_at = NULL,
    deadline = NULL,
    progress = NULL
WHERE task_id = ?1 AND attempt = ?2 AND worker_id = ?3 AND state = 3
RETURNING lane, level;

-- name: started_at
SELECT started_at FROM tasks WHERE task_id = ?;

-- name: still_overdue
SELECT task.task_id, task.attempt
FROM json_each(?1) AS wanted
CROSS JOIN tasks AS task ON task.task_id = wanted.value
LEFT JOIN workers AS worker ON worker.worker_id = task.worker_id
WHERE
    task.state = 3
    AND (worker.worker_id IS NULL OR worker.status = 'dead' OR task.deadline <= ?2);

-- name: let_go
DELETE FROM lingering WHERE worker_id = ? AND task_id = ? AND attempt = ?;
