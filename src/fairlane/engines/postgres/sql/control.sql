-- name: close_gate
LOCK TABLE fairlane.gate IN SHARE ROW EXCLUSIVE MODE;

-- name: pause_everything
UPDATE fairlane.catalogue SET paused = $1;

-- name: pause_queue
INSERT INTO fairlane.paused_queues (queue) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: resume_queue
DELETE FROM fairlane.paused_queues WHERE queue = $1;

-- name: pause_type
INSERT INTO fairlane.types (type, paused) VALUES ($1, $2)
ON CONFLICT (type) DO UPDATE SET paused = excluded.paused;

-- name: rate_everything
UPDATE fairlane.catalogue SET rate = $1;

-- name: limit_type
INSERT INTO fairlane.types AS set (type, rate, concurrency)
VALUES ($1, coalesce($2::float8, 0), coalesce($3::int, 0))
ON CONFLICT (type) DO UPDATE
SET rate = coalesce($2::float8, set.rate), concurrency = coalesce($3::int, set.concurrency);

-- A task that moves from one table to another while the statement runs is found in neither: the
-- caller looks again for those that exist and were not accounted for.

-- name: cancel
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
task AS MATERIALIZED (
    SELECT task_id, lane, level, ready_at FROM fairlane.content
    WHERE task_id = ANY ($1::text::uuid[])
),
unqueued AS (
    DELETE FROM fairlane.ready USING task
    WHERE
        ready.lane = task.lane AND ready.level = task.level
        AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id
    RETURNING ready.*
),
unscheduled AS (
    DELETE FROM fairlane.waiting USING task WHERE waiting.task_id = task.task_id
    RETURNING waiting.*
),
released AS (
    DELETE FROM fairlane.held USING task WHERE held.task_id = task.task_id
    RETURNING held.*
),
cancelled AS (
    SELECT
        task_id, 2 AS state, lane, level, attempt, version, retry_count, NULL::text AS worker_id,
        NULL::bigint AS claimed_at, NULL::bigint AS started_at, NULL::bytea AS progress,
        NULL::bigint AS progress_at
    FROM unqueued
    UNION ALL
    SELECT
        task_id, state, lane, level, attempt, version, retry_count, NULL, NULL, NULL, NULL, NULL
    FROM unscheduled
    UNION ALL
    SELECT
        task_id, 3, lane, level, attempt, version, retry_count, worker_id, claimed_at, started_at,
        progress, progress_at
    FROM released
),
ended AS (
    INSERT INTO fairlane.outcome (
        task_id, completed_at, claimed_at, started_at, lane, attempt, version, level, state,
        retry_count, worker_id, progress, progress_at
    )
    SELECT
        task_id, now, claimed_at, started_at, lane, attempt, version + 1, level, 8, retry_count,
        worker_id, progress, progress_at
    FROM clock, cancelled
),
recorded AS (
    INSERT INTO fairlane.attempts (task_id, attempt, worker_id, started_at, ended_at, outcome)
    SELECT task_id, attempt, worker_id, started_at, now, 'cancelled' FROM clock, released
    ON CONFLICT DO NOTHING
),
lingers AS (
    INSERT INTO fairlane.lingering (worker_id, task_id, attempt, lane)
    SELECT worker_id, task_id, attempt, lane FROM released
    ON CONFLICT DO NOTHING
),
moved AS (
    SELECT
        'cancel' AS verb, worker_id, lane, level, task_id, attempt, state AS source, 8 AS target,
        '' AS label, -1 AS bucket, NULL::float8 AS seconds
    FROM cancelled
),
{books}
SELECT task.task_id, cancelled.state, cancelled.worker_id, outcome.state
FROM task
LEFT JOIN cancelled ON cancelled.task_id = task.task_id
LEFT JOIN fairlane.outcome ON outcome.task_id = task.task_id;

-- name: lanes_of
SELECT DISTINCT lane FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]);

-- $2: the states that may be replayed, $3: the new level, $4: whether retries are counted anew.

-- name: replay
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
task AS MATERIALIZED (
    SELECT
        content.task_id, content.lane, content.level,
        CASE WHEN ready.task_id IS NOT NULL THEN 2 WHEN held.task_id IS NOT NULL THEN 3 END AS busy
    FROM fairlane.content
    LEFT JOIN fairlane.ready
        ON ready.lane = content.lane AND ready.level = content.level
        AND ready.ready_at = content.ready_at AND ready.task_id = content.task_id
    LEFT JOIN fairlane.held ON held.task_id = content.task_id
    WHERE content.task_id = ANY ($1::text::uuid[])
),
unscheduled AS (
    DELETE FROM fairlane.waiting USING task
    WHERE waiting.task_id = task.task_id AND waiting.state = ANY ($2::smallint[])
    RETURNING waiting.task_id, waiting.attempt, waiting.version, waiting.retry_count, waiting.state
),
revived AS (
    DELETE FROM fairlane.outcome USING task
    WHERE outcome.task_id = task.task_id AND outcome.state = ANY ($2::smallint[])
    RETURNING outcome.task_id, outcome.attempt, outcome.version, outcome.retry_count, outcome.state
),
replayed AS (
    SELECT found.*, task.lane, task.level AS old_level, coalesce($3, task.level) AS level
    FROM (SELECT * FROM unscheduled UNION ALL SELECT * FROM revived) AS found
    JOIN task ON task.task_id = found.task_id
),
-- An expiry that has passed is taken away.
revised AS (
    UPDATE fairlane.content AS task
    SET ready_at = now,
        level = replayed.level,
        returns = 0,
        error = NULL,
        expires_at = CASE WHEN expires_at > now THEN expires_at END
    FROM clock, replayed
    WHERE task.task_id = replayed.task_id
    RETURNING task.task_id, task.expires_at
),
queued AS (
    INSERT INTO fairlane.ready (
        task_id, ready_at, expires_at, updated_at, lane, attempt, version, level, retry_count
    )
    SELECT
        replayed.task_id, now, revised.expires_at, now, lane, attempt, version + 1, level,
        CASE WHEN $4 THEN 0 ELSE retry_count END
    FROM clock, replayed JOIN revised ON revised.task_id = replayed.task_id
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids, attempts)
    SELECT
        (SELECT now FROM clock), 'replay', lane, level, array_agg(task_id), array_agg(attempt)
    FROM replayed
    GROUP BY lane, level
)
SELECT
    task.task_id, replayed.state, coalesce(outcome.state, task.busy), replayed.lane,
    replayed.old_level, replayed.level
FROM task
LEFT JOIN replayed ON replayed.task_id = task.task_id
LEFT JOIN fairlane.outcome ON outcome.task_id = task.task_id;
