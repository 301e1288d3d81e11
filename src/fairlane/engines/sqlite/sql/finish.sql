-- Tasks end in batches: what is known of each end goes into a temporary table, and one statement
-- moves the rows. Zero, '' and -1 stand for NULL there, which is several times faster to bind.

-- name: connect
CREATE TEMP TABLE IF NOT EXISTS ending (
    task_id     TEXT,
    attempt     INTEGER,
    worker_id   TEXT,
    source      INTEGER,
    state       INTEGER,
    started_at  INTEGER,
    retry_count INTEGER,
    error       BLOB,
    result      BLOB
);

-- name: note
INSERT INTO ending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move
INSERT INTO finished (
    task_id, lane, level, state, ready_at, created_at, run_at, expires_at, attempt, retry_count,
    max_retries, returns, timeout, updated_at, version, payload, spec, idempotency_key, worker_id,
    claimed_at, started_at, error, progress, completed_at, result
)
SELECT
    task.task_id, task.lane, task.level, ending.state, task.ready_at, task.created_at, task.run_at,
    task.expires_at, task.attempt,
    CASE WHEN ending.retry_count < 0 THEN task.retry_count ELSE ending.retry_count END,
    task.max_retries, task.returns, task.timeout, ?1, task.version + 1, task.payload, task.spec,
    task.idempotency_key, task.worker_id, task.claimed_at,
    coalesce(nullif(ending.started_at, 0), task.started_at),
    nullif(ending.error, ''), task.progress, ?1, nullif(ending.result, '')
FROM ending
CROSS JOIN tasks AS task ON task.task_id = ending.task_id
WHERE
    task.state = ending.source
    AND task.attempt = ending.attempt
    AND (ending.worker_id = '' OR task.worker_id = ending.worker_id)
RETURNING task_id, lane, level, attempt, worker_id, started_at;

-- name: remove
DELETE FROM tasks WHERE task_id IN (
    SELECT ending.task_id FROM ending
    CROSS JOIN finished ON finished.task_id = ending.task_id
);

-- name: clear
DELETE FROM ending;

-- name: record_attempt
INSERT INTO attempts (task_id, attempt, worker_id, started_at, ended_at, outcome, error)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: linger
INSERT INTO lingering (worker_id, task_id, attempt, lane) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING;
