-- Times of earlier runs and replays: see core/trail.py.
ALTER TABLE fairlane.content ADD COLUMN trail bytea;

-- A trail with one more entry. Its last $6 bytes are kept.
CREATE FUNCTION fairlane.longer_trail(
    trail bytea, subject bigint, ready_at bigint, happened_at bigint, next_at bigint, most integer
) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT substr(trail, greatest(1, octet_length(trail) - most + 33))
        || int8send(subject) || int8send(ready_at) || int8send(happened_at) || int8send(next_at)
$$;

CREATE OR REPLACE VIEW fairlane.standing AS
SELECT
    task.task_id, task.lane, task.level,
    CASE
        WHEN ready.task_id IS NOT NULL THEN 2
        WHEN held.task_id IS NOT NULL THEN 3
        ELSE coalesce(waiting.state, outcome.state)
    END::smallint AS state,
    task.ready_at, task.created_at, task.run_at, task.expires_at,
    coalesce(outcome.attempt, held.attempt, ready.attempt, waiting.attempt) AS attempt,
    coalesce(outcome.retry_count, held.retry_count, ready.retry_count, waiting.retry_count)
        AS retry_count,
    task.max_retries, task.returns, task.timeout,
    coalesce(outcome.completed_at, held.updated_at, ready.updated_at, waiting.updated_at)
        AS updated_at,
    coalesce(outcome.version, held.version, ready.version, waiting.version) AS version,
    task.payload, task.spec, task.idempotency_key,
    coalesce(outcome.worker_id, held.worker_id) AS worker_id,
    coalesce(outcome.claimed_at, held.claimed_at) AS claimed_at,
    coalesce(outcome.started_at, held.started_at) AS started_at,
    CASE WHEN outcome.task_id IS NULL THEN task.error ELSE outcome.error END AS error,
    coalesce(outcome.progress, held.progress) AS progress,
    coalesce(outcome.progress_at, held.progress_at) AS progress_at,
    outcome.completed_at, outcome.result, waiting.due_at, task.trail
FROM fairlane.content AS task
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.outcome WHERE outcome.task_id = task.task_id OFFSET 0
) AS outcome ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.ready
    WHERE
        outcome.task_id IS NULL
        AND ready.lane = task.lane AND ready.level = task.level
        AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id
    OFFSET 0
) AS ready ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.held
    WHERE coalesce(outcome.task_id, ready.task_id) IS NULL AND held.task_id = task.task_id
    OFFSET 0
) AS held ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.waiting
    WHERE
        coalesce(outcome.task_id, ready.task_id, held.task_id) IS NULL
        AND waiting.task_id = task.task_id
    OFFSET 0
) AS waiting ON true;
