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
INSERT INTO fairlane.types AS set (type, rate, concurrency, timeout)
VALUES ($1, coalesce($2::float8, 0), coalesce($3::int, 0), coalesce($4::float8, 0))
ON CONFLICT (type) DO UPDATE
SET rate = coalesce($2::float8, set.rate), concurrency = coalesce($3::int, set.concurrency),
    timeout = coalesce($4::float8, set.timeout);

-- name: set_breaker
UPDATE fairlane.types SET breaker = $2, circuit = NULL WHERE type = $1;

-- name: lanes_of
SELECT DISTINCT lane FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]);

-- Returns the tasks that were replayed, and the states of all these tasks before. A task that moves
-- from one table to another while the statement runs is found in neither: the caller looks again
-- for those that were in a state to be replayed, and were not.
--
-- $2: the states that may be replayed; of the move: $3 level, $4 retry_count, $5 returns, $6 verb, $7
-- whether the tasks wait for parents (see reruns.py).

-- name: replay
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
unscheduled AS (
    DELETE FROM fairlane.waiting
    WHERE task_id = ANY ($1::text::uuid[]) AND state = ANY ($2::smallint[])
    RETURNING
        task_id, attempt, version, retry_count, state, linked, due_at IS NULL AS bound,
        NULL::bigint AS claimed_at, NULL::bigint AS completed_at, NULL::bigint AS started_at,
        NULL::text AS worker_id
),
revived AS (
    DELETE FROM fairlane.outcome
    WHERE task_id = ANY ($1::text::uuid[]) AND state = ANY ($2::smallint[])
    RETURNING
        task_id, attempt, version, retry_count, state, false AS linked, false AS bound,
        claimed_at, completed_at, started_at, worker_id
),
-- The outcome, which goes now, was the record of the run that completed.
recorded AS (
    INSERT INTO fairlane.attempts (task_id, attempt, worker_id, started_at, ended_at, outcome)
    SELECT task_id, attempt, worker_id, started_at, completed_at, 'completed' FROM revived
    WHERE state = COMPLETED
    ON CONFLICT DO NOTHING
),
-- An expiry that has passed is removed.
replayed AS MATERIALIZED (
    SELECT
        found.*, task.tid, task.lane, task.level AS old_level, coalesce($3, task.level) AS level,
        task.unique_key IS NOT NULL AS keyed,
        CASE WHEN task.expires_at > (SELECT now FROM clock) THEN task.expires_at END AS expires_at
    FROM (SELECT * FROM unscheduled UNION ALL SELECT * FROM revived) AS found
    CROSS JOIN LATERAL (
        SELECT ctid AS tid, lane, level, unique_key, expires_at FROM fairlane.content
        WHERE content.task_id = found.task_id
        OFFSET 0
    ) AS task
),
revised AS (
    UPDATE fairlane.content AS task
    SET ready_at = (SELECT now FROM clock),
        run_at = CASE WHEN $7::boolean THEN (SELECT now FROM clock) ELSE task.run_at END,
        level = replayed.level,
        returns = $5,
        error = NULL,
        expires_at = replayed.expires_at,
        trail = fairlane.longer_trail(
            CASE
                WHEN replayed.claimed_at IS NULL THEN coalesce(task.trail, '')
                ELSE fairlane.longer_trail(
                    coalesce(task.trail, ''), replayed.attempt, task.ready_at, replayed.claimed_at,
                    0, TRAIL_BYTES
                )
            END,
            -(TRAIL_STATES * replayed.version + replayed.state), task.ready_at, coalesce(replayed.completed_at, 0),
            (SELECT CASE WHEN $7::boolean THEN -now ELSE now END FROM clock), TRAIL_BYTES
        )
    FROM replayed
    WHERE task.ctid = replayed.tid
),
queued AS (
    INSERT INTO fairlane.ready (
        task_id, ready_at, expires_at, updated_at, lane, attempt, version, level, retry_count,
        linked
    )
    SELECT
        task_id, now, expires_at, now, lane, attempt, version + 1, level,
        coalesce($4::smallint, retry_count), linked OR keyed
    FROM clock, replayed
    WHERE NOT $7::boolean
),
bound AS (
    INSERT INTO fairlane.waiting (
        task_id, due_at, ready_at, expires_at, updated_at, lane, attempt, version, level, state,
        retry_count, linked
    )
    SELECT
        task_id, NULL, now, expires_at, now, lane, attempt, version + 1, level, SCHEDULED,
        coalesce($4::smallint, retry_count), linked OR keyed
    FROM clock, replayed
    WHERE $7::boolean
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids, attempts)
    SELECT
        (SELECT now FROM clock), $6::text, lane, level, array_agg(task_id), array_agg(attempt)
    FROM replayed
    GROUP BY lane, level
)
SELECT true AS applied, task_id::text, state, lane, old_level, bound, keyed FROM replayed
UNION ALL
SELECT false, task_id::text, state, NULL, NULL, NULL, NULL FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);

-- A task that ended while another transaction had its key locked may still be stored as its holder.
-- Of several tasks with one key the first one takes it.

-- name: take_keys_again
INSERT INTO fairlane.uniques (key, task_id)
SELECT DISTINCT ON (task.unique_key) task.unique_key, task.task_id
FROM unnest($1::text::uuid[]) WITH ORDINALITY AS sent (task_id, place)
CROSS JOIN LATERAL (
    SELECT task_id, unique_key FROM fairlane.content
    WHERE content.task_id = sent.task_id
    OFFSET 0
) AS task
WHERE task.unique_key IS NOT NULL
ORDER BY task.unique_key, sent.place
ON CONFLICT (key) DO UPDATE SET task_id = excluded.task_id
WHERE NOT EXISTS (
    SELECT FROM fairlane.standing
    WHERE
        standing.task_id = uniques.task_id
        AND standing.state IN (SCHEDULED, QUEUED, EXECUTING, RETRYING)
);
