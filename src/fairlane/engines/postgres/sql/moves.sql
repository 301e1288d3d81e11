-- Rows are found through indexes whatever the statistics say: by `= ANY` of an array, or one at a
-- time (LATERAL, with OFFSET 0 or a lock so that the planner cannot turn it into a join). These
-- tables are empty one moment and full the next, and plans are kept.
--
-- Returns the tasks that were ended, and the states of all these tasks before. A task that moves
-- from one table to another while the statement runs is found in neither: the caller looks again
-- for those that were in a state to be ended, and were not.
--
-- $2: the states of tasks to end; of the move: $3 label, $4 error, $5 verb, $6 state, $7 run, $8
-- whether the slot lingers.

-- name: end
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
queued AS MATERIALIZED (
    SELECT place.tid FROM fairlane.content AS task
    CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM fairlane.ready
        WHERE
            ready.lane = task.lane AND ready.level = task.level
            AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id
        OFFSET 0
    ) AS place
    WHERE task.task_id = ANY ($1::text::uuid[]) AND QUEUED = ANY ($2::smallint[])
),
unqueued AS (
    DELETE FROM fairlane.ready USING queued WHERE ready.ctid = queued.tid
    RETURNING ready.*
),
unscheduled AS (
    DELETE FROM fairlane.waiting
    WHERE task_id = ANY ($1::text::uuid[]) AND state = ANY ($2::smallint[])
    RETURNING *
),
released AS (
    DELETE FROM fairlane.held
    WHERE task_id = ANY ($1::text::uuid[]) AND EXECUTING = ANY ($2::smallint[])
    RETURNING *
),
found AS (
    SELECT
        task_id, QUEUED AS state, lane, level, attempt, version, retry_count, linked,
        false AS bound, NULL::text AS worker_id, NULL::bigint AS claimed_at,
        NULL::bigint AS started_at, NULL::bytea AS progress, NULL::bigint AS progress_at
    FROM unqueued
    UNION ALL
    SELECT
        task_id, state, lane, level, attempt, version, retry_count, linked, due_at IS NULL,
        NULL, NULL, NULL, NULL, NULL
    FROM unscheduled
    UNION ALL
    SELECT
        task_id, EXECUTING, lane, level, attempt, version, retry_count, linked, false,
        worker_id, claimed_at, started_at, progress, progress_at
    FROM released
),
ended AS (
    INSERT INTO fairlane.outcome (
        task_id, completed_at, claimed_at, started_at, lane, attempt, version, level, state,
        retry_count, worker_id, error, progress, progress_at
    )
    SELECT
        task_id, now, claimed_at, started_at, lane, attempt, version + 1, level, $6::smallint,
        retry_count, worker_id, $4::bytea, progress, progress_at
    FROM clock, found
),
recorded AS (
    INSERT INTO fairlane.attempts (task_id, attempt, worker_id, started_at, ended_at, outcome)
    SELECT task_id, attempt, worker_id, started_at, now, $7::text FROM clock, released
    WHERE $7::text IS NOT NULL
    ON CONFLICT DO NOTHING
),
dropped AS (
    DELETE FROM fairlane.attempts AS run
    USING released
    CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM fairlane.attempts
        WHERE
            attempts.task_id = released.task_id
            AND attempts.attempt > FIRST_RUNS
            AND attempts.attempt <= released.attempt - LAST_RUNS
        OFFSET 0
    ) AS middle
    WHERE released.attempt > FIRST_RUNS + LAST_RUNS AND run.ctid = middle.tid
),
lingers AS (
    INSERT INTO fairlane.lingering (worker_id, task_id, attempt, lane)
    SELECT worker_id, task_id, attempt, released.lane
    FROM released JOIN fairlane.workers AS worker USING (worker_id)
    WHERE $8::boolean AND worker.status <> 'dead'  -- the lock makes `bury` wait
    FOR SHARE OF worker
    ON CONFLICT DO NOTHING
),
moved AS (
    SELECT
        $5::text AS verb, worker_id, lane, level, task_id, attempt, state AS source,
        $6::smallint AS target, $3::text AS label, UNTIMED AS bucket, NULL::float8 AS seconds
    FROM found
)
/* TEMPLATE: accounting */
SELECT true AS applied, task_id::text, state, worker_id, linked, bound FROM found
UNION ALL
SELECT false, task_id::text, state, NULL, false, false FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);
