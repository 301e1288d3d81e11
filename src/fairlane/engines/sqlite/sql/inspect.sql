-- name: tasks
SELECT
    lane, task_id, level, state, ready_at, due_at, created_at, run_at, expires_at, attempt,
    retry_count, max_retries, returns, timeout, updated_at, version, payload, spec,
    idempotency_key, worker_id, claimed_at, started_at, completed_at, error, result, trail,
    progress
FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: heads
SELECT
    lane, task_id, level, state, ready_at, due_at, created_at, run_at, expires_at, attempt,
    retry_count, max_retries, returns, timeout, updated_at, version, x'', spec,
    idempotency_key, worker_id, claimed_at, started_at, completed_at, error, NULL, trail,
    progress
FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: attempts
SELECT task_id, attempt, worker_id, started_at, ended_at, outcome, error FROM attempts
WHERE task_id IN (SELECT value FROM json_each(?))
ORDER BY task_id, attempt;

-- name: workers
SELECT
    worker_id, status, capacity, load, capabilities, queues, types, host, version, health, lease,
    start_within, registered_at, seen_at
FROM workers
ORDER BY registered_at, worker_id;

-- name: holdings
SELECT worker_id, task_id FROM held ORDER BY worker_id, task_id;

-- name: runs_of_worker
SELECT task_id, attempt FROM held WHERE worker_id = ? AND task_id > ? ORDER BY task_id LIMIT ?;

-- name: tallies
SELECT lane, level, source, target, label, bucket, times, seconds FROM tallies;
