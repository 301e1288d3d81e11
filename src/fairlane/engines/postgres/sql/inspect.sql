-- name: get
SELECT
    fairlane.now_us(), (SELECT catalogue.version FROM fairlane.catalogue), lane, progress,
    progress_at,
    task.task_id::text, level, state, ready_at, due_at, created_at, run_at, expires_at,
    task.attempt, retry_count, max_retries, returns, timeout, updated_at, version, payload, spec,
    idempotency_key, task.worker_id, claimed_at, task.started_at, completed_at, task.error, result,
    trail, run.numbers, run.workers, run.starts, run.ends, run.outcomes, run.errors
FROM fairlane.standing AS task
CROSS JOIN LATERAL (
    SELECT
        array_agg(attempt) AS numbers, array_agg(worker_id) AS workers,
        array_agg(started_at) AS starts, array_agg(ended_at) AS ends,
        array_agg(outcome) AS outcomes, array_agg(error) AS errors
    FROM (
        SELECT * FROM fairlane.attempts WHERE attempts.task_id = task.task_id ORDER BY attempt
    ) AS past
) AS run
WHERE task.task_id = ANY ($1::text::uuid[]);

-- name: heads
SELECT
    fairlane.now_us(), (SELECT catalogue.version FROM fairlane.catalogue), lane, progress,
    progress_at,
    task.task_id::text, level, state, ready_at, due_at, created_at, run_at, expires_at,
    task.attempt, retry_count, max_retries, returns, timeout, updated_at, version, ''::bytea, spec,
    idempotency_key, task.worker_id, claimed_at, task.started_at, completed_at, task.error, NULL,
    trail, NULL
FROM fairlane.standing AS task
WHERE task.task_id = ANY ($1::text::uuid[]);

-- name: workers
SELECT
    fairlane.now_us(),
    worker_id, status, capacity, load, capabilities, queues, types, host, version, health, lease,
    start_within, registered_at, seen_at
FROM fairlane.workers
ORDER BY registered_at, worker_id;

-- name: held_by_worker
SELECT worker_id, array_agg(task_id::text) FROM fairlane.held GROUP BY worker_id;

-- name: runs_of_worker
SELECT task_id::text, attempt FROM fairlane.held
WHERE worker_id = $1 AND ($2::text IS NULL OR held.task_id > $2::text::uuid)
ORDER BY held.task_id
LIMIT $3;

-- name: tallies
SELECT
    lane, level, source, target, label, bucket, sum(times)::bigint, sum(seconds)
FROM (TABLE fairlane.tallies UNION ALL TABLE fairlane.tally_deltas) AS counted
GROUP BY lane, level, source, target, label, bucket
ORDER BY lane, level, source, target, label, bucket;
