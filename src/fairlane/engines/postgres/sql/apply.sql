-- Most moves of a batch differ only in task, result and time. What they share is sent once per kind
-- of move: `kind` is a position in the arrays from $7 on.
--
-- Rows are found one by one through the index, whatever the statistics say: the table is empty one
-- moment and full the next. The statement misses a row that is updated at the same moment (by
-- `start`, by `progress`, or because it becomes linked), and with `unlinked` it skips linked rows.
-- The caller locks those rows and applies their moves in a second statement.
--
-- Completions need no part of `others`.

-- name: apply
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
item AS MATERIALIZED (
    SELECT sent.*, task.tid
    FROM unnest(
        $1::text::uuid[], $2::text::int[], $3::text::smallint[], $4::bytea[], $5::text::float8[],
        $6::text::smallint[]
    ) WITH ORDINALITY AS sent (task_id, attempt, kind, result, seconds, bucket, number)
    CROSS JOIN LATERAL (
        SELECT ctid AS tid, attempt, worker_id, claimed_at, started_at, deadline, linked
        FROM fairlane.held
        WHERE held.task_id = sent.task_id
        LIMIT 1
    ) AS task
    WHERE
        task.attempt = sent.attempt
        AND task.worker_id = ($7::text[])[sent.kind]
        /* BEGIN unlinked */ AND NOT task.linked /* END unlinked */
        AND (
            NOT $13::boolean
            OR task.deadline <= (SELECT now FROM clock)
            OR NOT EXISTS (
                SELECT FROM fairlane.workers AS worker
                WHERE
                    worker.worker_id = task.worker_id
                    AND worker.status <> 'dead'
                    AND (
                        worker.start_within IS NULL
                        OR task.started_at IS NOT NULL
                        OR task.claimed_at + worker.start_within > (SELECT now FROM clock)
                    )
            )
        )
),
released AS (
    DELETE FROM fairlane.held AS task USING item
    WHERE task.ctid = item.tid
    RETURNING
        item.number, item.result, item.seconds, item.bucket, item.kind,
        ($9::smallint[])[item.kind] AS state,
        coalesce(
            (SELECT now FROM clock) - (item.seconds * 1000000)::bigint, task.started_at
        ) AS began,
        task.*
),
ended AS (
    INSERT INTO fairlane.outcome (
        task_id, completed_at, claimed_at, started_at, lane, attempt, version, level, state,
        retry_count, worker_id, result, error, progress, progress_at
    )
    SELECT
        task_id, now, claimed_at, began, lane, attempt, version + 1, level, state,
        coalesce(($10::smallint[])[kind], retry_count), worker_id, result,
        ($12::bytea[])[kind], progress, progress_at
    FROM clock, released
    WHERE state IN (COMPLETED, FAILED, DEAD_LETTER, CANCELLED)
),
/* BEGIN others */
queued AS (
    INSERT INTO fairlane.ready (
        task_id, ready_at, expires_at, updated_at, lane, attempt, version, level, retry_count,
        linked
    )
    SELECT
        task_id, ready_at, expires_at, now, lane, attempt, version + 1, level,
        ($10::smallint[])[kind], linked
    FROM clock, released
    WHERE state = QUEUED
),
postponed AS (
    INSERT INTO fairlane.waiting (
        task_id, due_at, ready_at, expires_at, updated_at, lane, attempt, version, level, state,
        retry_count, linked
    )
    SELECT
        task_id, now + ($17::bigint[])[kind],
        CASE WHEN ($19::boolean[])[kind] THEN now + ($17::bigint[])[kind] ELSE ready_at END,
        expires_at, now, lane, attempt, version + 1, level, state, ($10::smallint[])[kind],
        linked
    FROM clock, released
    WHERE state IN (SCHEDULED, RETRYING)
),
revised AS (
    UPDATE fairlane.content AS task
    SET returns = ($15::smallint[])[kind],
        timeout = ($16::float8[])[kind],
        error = ($12::bytea[])[kind],
        trail = fairlane.longer_trail(
            coalesce(task.trail, ''), released.attempt, released.ready_at, claimed_at,
            CASE WHEN state = QUEUED THEN 0 ELSE now + ($17::bigint[])[kind] END, TRAIL_BYTES
        ),
        run_at = CASE WHEN state = SCHEDULED THEN now + ($17::bigint[])[kind] ELSE run_at END,
        ready_at = CASE
            WHEN ($19::boolean[])[kind] THEN now + ($17::bigint[])[kind] ELSE task.ready_at
        END
    FROM clock, released
    CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM fairlane.content WHERE content.task_id = released.task_id OFFSET 0
    ) AS place
    WHERE task.ctid = place.tid AND state IN (SCHEDULED, QUEUED, RETRYING)
),
recorded AS (
    INSERT INTO fairlane.attempts (
        task_id, attempt, worker_id, started_at, ended_at, outcome, error
    )
    SELECT
        task_id, attempt, worker_id, began, now, ($14::text[])[kind], ($12::bytea[])[kind]
    FROM clock, released
    WHERE state <> COMPLETED  -- the outcome of a completion records its run
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
    WHERE ($18::boolean[])[kind] AND worker.status <> 'dead'
    FOR SHARE OF worker
    ON CONFLICT DO NOTHING
),
/* END others */
moved AS (
    SELECT
        ($8::text[])[kind] AS verb, worker_id, lane, level, task_id, attempt,
        EXECUTING AS source, state AS target, ($11::text[])[kind] AS label, bucket, seconds
    FROM released
)
/* TEMPLATE: accounting */
-- Plain results are refused as in submit.sql.
SELECT
    number, lane /* BEGIN linked */, linked /* END linked */
    /* BEGIN plain */,
    (
        SELECT sqrt(-version) FROM fairlane.documents
        WHERE kind = 'encryption' AND id = 'required'
    ) AS refused
    /* END plain */
FROM released;

-- name: held_now
SELECT task_id::text, attempt, worker_id FROM fairlane.held WHERE task_id = ANY ($1::text::uuid[]);

-- name: lock_held
SELECT task_id::text FROM fairlane.held WHERE task_id = ANY ($1::text::uuid[])
ORDER BY task_id
FOR UPDATE;

-- name: lock_unlocked
SELECT task_id::text FROM fairlane.held WHERE task_id = ANY ($1::text::uuid[])
ORDER BY task_id
FOR UPDATE SKIP LOCKED;

-- name: drop_lingering
DELETE FROM fairlane.lingering AS slot
USING unnest($1::text[], $2::text::uuid[], $3::text::int[]) AS late (worker_id, task_id, attempt)
WHERE
    slot.worker_id = late.worker_id
    AND slot.task_id = late.task_id
    AND slot.attempt = late.attempt;
