-- Times of earlier runs and replays: see core/trail.py.
ALTER TABLE content ADD COLUMN trail BLOB;
DROP VIEW tasks;
CREATE VIEW tasks AS
SELECT
    content.number,
    content.task_id,
    content.lane,
    content.level,
    CASE
        WHEN ready.number IS NOT NULL THEN 2
        WHEN held.number IS NOT NULL THEN 3
        ELSE coalesce(waiting.state, outcome.state)
    END AS state,
    content.ready_at,
    waiting.due_at,
    content.created_at,
    content.run_at,
    content.expires_at,
    coalesce(ready.attempt, held.attempt, waiting.attempt, outcome.attempt) AS attempt,
    coalesce(ready.retry_count, held.retry_count, waiting.retry_count, outcome.retry_count)
        AS retry_count,
    content.max_retries,
    content.returns,
    content.timeout,
    coalesce(
        ready.updated_at,
        max(held.claimed_at, coalesce(json_extract(content.progress, '$[2]'), 0)),
        waiting.updated_at,
        outcome.completed_at
    ) AS updated_at,
    coalesce(ready.version, held.version, waiting.version, outcome.version) AS version,
    content.payload,
    content.spec,
    content.idempotency_key,
    coalesce(held.worker_id, outcome.worker_id) AS worker_id,
    coalesce(held.claimed_at, outcome.claimed_at) AS claimed_at,
    coalesce(held.started_at, outcome.started_at) AS started_at,
    outcome.completed_at,
    content.error,
    outcome.result,
    content.progress,
    content.trail
FROM content
LEFT JOIN waiting ON waiting.number = content.number
LEFT JOIN held ON held.task_id = content.task_id
LEFT JOIN outcome ON outcome.number = content.number
LEFT JOIN ready
    ON ready.lane = content.lane
    AND ready.level = content.level
    AND ready.ready_at = content.ready_at
    AND ready.task_id = content.task_id;
