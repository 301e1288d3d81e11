-- Candidates, newest first, out of everything or out of one state: see find.py. The state tables are
-- read by task id and no further than the limit; `ready` has another order and is read whole.

-- name: boundary
SELECT task_id FROM content WHERE task_id < ? ORDER BY task_id DESC LIMIT 1 OFFSET ? - 1;

-- name: any
SELECT task_id, lane, level, created_at, spec, QUEUED, NULL, NULL FROM content
WHERE task_id < ?1 AND task_id >= ?2
    AND (?3 IS NULL OR lane IN (SELECT value FROM json_each(?3)))
    AND (?5 = 0 OR spec IS NOT NULL)
ORDER BY task_id DESC;

-- name: any_standing
SELECT
    task.task_id, task.lane, task.level, task.created_at, task.spec,
    CASE
        WHEN held.number IS NOT NULL THEN EXECUTING
        ELSE coalesce(outcome.state, waiting.state, QUEUED)
    END AS standing,
    outcome.completed_at,
    coalesce(held.worker_id, outcome.worker_id)
FROM content AS task
LEFT JOIN outcome ON outcome.number = task.number
LEFT JOIN waiting ON waiting.number = task.number
LEFT JOIN held ON held.task_id = task.task_id
WHERE task.task_id < ?1 AND task.task_id >= ?2
    AND (?3 IS NULL OR task.lane IN (SELECT value FROM json_each(?3)))
    AND (?5 = 0 OR task.spec IS NOT NULL)
    AND (?4 IS NULL OR standing IN (SELECT value FROM json_each(?4)))
ORDER BY task.task_id DESC;

-- name: waiting
SELECT task.task_id, task.lane, task.level, task.created_at, task.spec, ?3, NULL, NULL
FROM (
    SELECT task_id, number FROM waiting WHERE state = ?3 AND task_id < ?1
    ORDER BY task_id DESC LIMIT ?2
) AS found CROSS JOIN content AS task ON task.number = found.number;

-- name: held
SELECT task.task_id, task.lane, task.level, task.created_at, task.spec, ?3, NULL, found.worker_id
FROM (
    SELECT task_id, number, worker_id FROM held WHERE task_id < ?1 ORDER BY task_id DESC LIMIT ?2
) AS found CROSS JOIN content AS task ON task.number = found.number;

-- name: ended
SELECT
    task.task_id, task.lane, task.level, task.created_at, task.spec, ?3, found.completed_at,
    found.worker_id
FROM (
    SELECT task_id, number, completed_at, worker_id FROM outcome
    WHERE state = ?3 AND task_id < ?1
    ORDER BY task_id DESC LIMIT ?2
) AS found CROSS JOIN content AS task ON task.number = found.number;

-- name: depths
SELECT lane, level, depth FROM streams WHERE depth > 0;

-- name: stream
SELECT task.task_id, task.lane, task.level, task.created_at, task.spec, QUEUED, NULL, NULL
FROM ready CROSS JOIN content AS task ON task.number = ready.number
WHERE ready.lane = ? AND ready.level = ?;
