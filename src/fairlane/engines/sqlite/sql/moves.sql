-- name: standing
SELECT number, task_id, lane, level, ready_at, state, attempt, retry_count, version, worker_id,
    claimed_at, started_at, completed_at
FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: standing_by_number
SELECT number, task_id, lane, level, ready_at, state, attempt, retry_count, version, worker_id,
    claimed_at, started_at, completed_at
FROM tasks WHERE number = ?;

-- name: leave_waiting
DELETE FROM waiting WHERE number = ?;

-- name: leave_ready
DELETE FROM ready WHERE lane = ? AND level = ? AND ready_at = ? AND task_id = ?;

-- name: leave_held
DELETE FROM held WHERE task_id = ?;

-- name: leave_outcome
DELETE FROM outcome WHERE number = ?;

-- name: enter_waiting
INSERT INTO waiting (
    number, attempt, retry_count, version, updated_at, state, due_at, task_id, lane, level
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: enter_ready
INSERT INTO ready (
    lane, level, ready_at, task_id, number, attempt, retry_count, version, updated_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: enter_outcome
INSERT INTO outcome (
    number, attempt, retry_count, version, state, worker_id, claimed_at, started_at, completed_at,
    task_id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: note_error
UPDATE content SET error = ? WHERE number = ?;

-- name: note_place
UPDATE content SET level = ?, ready_at = ? WHERE number = ?;

-- name: note_run_at
UPDATE content SET run_at = ? WHERE number = ?;

-- name: note_rerun
UPDATE content
SET returns = ?1,
    timeout = coalesce(?2, timeout),
    error = ?3,
    progress = NULL,
    expires_at = CASE WHEN expires_at <= ?4 THEN NULL ELSE expires_at END,
    trail = substr(CAST(coalesce(trail, x'') || ?5 AS BLOB), -TRAIL_BYTES)
WHERE number = ?6;

-- name: forget_expiry
DELETE FROM expiries
WHERE (expires_at, number) IN (SELECT expires_at, number FROM content WHERE number = ?);

-- name: expire_again
INSERT OR IGNORE INTO expiries (expires_at, number)
SELECT expires_at, number FROM content WHERE number = ? AND expires_at IS NOT NULL;

-- name: record_attempt
INSERT INTO attempts (task_id, attempt, worker_id, started_at, ended_at, outcome, error)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: drop_middle_attempts
DELETE FROM attempts WHERE task_id = ? AND attempt > FIRST_RUNS AND attempt <= ? - LAST_RUNS;

-- name: linger
INSERT INTO lingering (worker_id, task_id, attempt, lane)
SELECT worker_id, ?2, ?3, ?4 FROM workers WHERE worker_id = ?1 AND status <> 'dead'
ON CONFLICT DO NOTHING;
