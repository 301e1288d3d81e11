-- A claim is one statement, here with one arm that reads one stream. claim_order.py repeats the arm
-- for as many as there are to read. It returns one row about the worker and the store, and one for
-- each task. A claimed task is counted by how long it had been ready: see waits_of() in core/tally.py.
--
-- $1 worker, $2 request, $3 the version of the catalogue that the streams were chosen by, $4 how
-- many tasks at most, $5 whether tasks that are due or expired, and dependents, were processed
-- before, $6 the last request whose reply the worker has, $7 … $10 lane, level and ages of each
-- arm, $11 the effective level of each group of arms.

-- name: claim
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
gate AS (DELETE FROM fairlane.gate),
header AS MATERIALIZED (
    SELECT
        worker.status, worker.request_id, worker.claimed_at, catalogue.version, clock.now,
        (SELECT min(due_at) FROM fairlane.waiting) AS due_at,
        least(
            (SELECT min(expires_at) FROM fairlane.ready WHERE expires_at IS NOT NULL),
            (SELECT min(expires_at) FROM fairlane.waiting WHERE expires_at IS NOT NULL)
        ) AS expires_at,
        EXISTS (SELECT FROM fairlane.bonds WHERE fresh)
            OR EXISTS (SELECT FROM fairlane.ended_parents) AS left_over
    FROM clock
    CROSS JOIN fairlane.catalogue
    LEFT JOIN fairlane.workers AS worker ON worker.worker_id = $1
),
open AS MATERIALIZED (
    SELECT true AS yes FROM header
    WHERE
        status = 'active'
        AND request_id IS DISTINCT FROM $2
        AND coalesce($6::text = coalesce(request_id, ''), true)
        AND version = $3
        AND ($5 OR (due_at <= now OR expires_at <= now OR left_over) IS NOT TRUE)
),
-- Each arm reads one segment of one stream, in order and only as far as needed. It has an ORDER BY
-- of its own, or the planner would read everything and sort it. Arms of one effective level form a
-- group and are merged; groups are read one after the other. The result is joined back to the
-- table, which can then be locked.
/* BEGIN pick */
picked AS MATERIALIZED (
    SELECT task.ctid AS tid, effective
    FROM (
        /* BEGIN groups */
        SELECT tid, ($11::smallint[])[1] AS effective, ready_at, task_id
        FROM (
            /* BEGIN arms */
            (
                SELECT ctid AS tid, ready_at, task_id FROM fairlane.ready
                WHERE
                    lane = ($7::int[])[1] AND level = ($8::smallint[])[1]
                    AND ready_at <= fairlane.now_us() - ($9::bigint[])[1]
                    AND ready_at > fairlane.now_us() - ($10::bigint[])[1]
                    AND (expires_at > fairlane.now_us()) IS NOT FALSE
                ORDER BY ready_at, task_id
            )
            /* END arms */
        ) AS group_1
        /* END groups */
    ) AS candidate JOIN fairlane.ready AS task ON task.ctid = candidate.tid
    WHERE (SELECT yes FROM open)
    LIMIT $4
    FOR UPDATE OF task SKIP LOCKED
),
placed AS MATERIALIZED (SELECT tid, effective, row_number() OVER () AS place FROM picked)
/* END pick */,
taken AS (
    DELETE FROM fairlane.ready AS task USING placed
    WHERE task.ctid = placed.tid
    RETURNING
        placed.place, placed.effective, task.task_id, task.ready_at, task.expires_at, task.lane,
        task.attempt + 1 AS attempt, task.version + 1 AS version, task.level, task.retry_count,
        task.linked
),
handed AS (
    INSERT INTO fairlane.held (
        task_id, ready_at, expires_at, claimed_at, updated_at, lane, attempt, version, level,
        retry_count, linked, worker_id
    )
    SELECT
        task_id, ready_at, expires_at, now, now, lane, attempt, version, level, retry_count,
        linked, $1
    FROM clock, taken
),
-- The claims of an idle worker only write `seen_at`, every third of its lease.
seen AS (
    UPDATE fairlane.workers
    SET seen_at = (SELECT now FROM clock),
        request_id = CASE WHEN EXISTS (SELECT FROM taken) THEN $2 ELSE request_id END,
        claimed_at =
            CASE WHEN EXISTS (SELECT FROM taken) THEN (SELECT now FROM clock) ELSE claimed_at END
    WHERE
        worker_id = $1
        AND status <> 'dead'
        AND request_id IS DISTINCT FROM $2
        AND coalesce($6::text = coalesce(request_id, ''), true)
        AND request_id IS NOT DISTINCT FROM (SELECT request_id FROM header)
        AND (EXISTS (SELECT FROM taken) OR (SELECT now FROM clock) - seen_at > lease / 3)
    RETURNING true
),
moved AS (
    SELECT
        'claim' AS verb, $1 AS worker_id, lane, level, task_id, attempt, QUEUED AS source,
        EXECUTING AS target, CASE WHEN effective = level THEN '' ELSE effective::text END AS label,
        width_bucket(now - ready_at - 1, ARRAY[/* TEMPLATE: buckets */]::bigint[]) AS bucket,
        greatest(0, now - ready_at) / 1e6::float8 AS seconds
    FROM clock, taken
)
/* TEMPLATE: accounting */
SELECT
    0 AS place, NULL AS task_id, NULL::int AS attempt, NULL::int AS lane,
    NULL::smallint AS level, NULL::bytea AS payload, NULL::smallint AS retry_count,
    NULL::smallint AS max_retries, NULL::smallint AS returns, NULL::float8 AS timeout,
    NULL::bigint AS created_at, NULL::bigint AS ready_at, NULL::bytea AS spec,
    -- If the worker's row has changed since this statement read it, everything is rolled back: the
    -- same request may run twice at once, or was repeated and answered before, or the worker was
    -- declared dead.
    CASE
        WHEN EXISTS (SELECT FROM taken) AND NOT EXISTS (SELECT FROM seen)
        THEN fairlane.overtaken()::text
        ELSE status
    END AS status,
    request_id, ARRAY[claimed_at, version, now, due_at, expires_at, left_over::int] AS numbers
FROM header
UNION ALL
SELECT
    place, taken.task_id::text, taken.attempt, taken.lane, taken.level, task.payload,
    taken.retry_count, task.max_retries, task.returns, task.timeout, task.created_at,
    taken.ready_at, task.spec, NULL, NULL, NULL
FROM taken
-- One row at a time, through the index: a plan is kept longer than the statistics it was made by.
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = taken.task_id OFFSET 0
) AS task;

-- With limits, `pick` is another one: with a section for each limited type, and one for all other
-- types. $12 how many tasks a section may give at most, $13 whether it is limited, $14 how many
-- tasks the limited sections may give together.

-- name: claim_within_limits
WITH open AS (SELECT true AS yes),
example AS (SELECT ctid AS tid, level AS effective, ready_at, task_id FROM fairlane.ready),
/* BEGIN pick */
/* BEGIN sections */
section_1 AS MATERIALIZED (
    SELECT
        task.ctid AS tid, candidate.effective, candidate.ready_at, candidate.task_id,
        ($13::boolean[])[1] AS limited
    FROM (
        /* BEGIN groups */ TABLE example /* END groups */
    ) AS candidate JOIN fairlane.ready AS task ON task.ctid = candidate.tid
    WHERE (SELECT yes FROM open)
    LIMIT ($12::int[])[1]
    FOR UPDATE OF task SKIP LOCKED
)
/* END sections */,
ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY limited ORDER BY effective DESC, ready_at, task_id) AS nth
    FROM (/* BEGIN tables */ TABLE section_1 /* END tables */) AS candidate
),
placed AS MATERIALIZED (
    SELECT
        tid, effective, row_number() OVER (ORDER BY effective DESC, ready_at, task_id) AS place
    FROM ranked
    WHERE NOT limited OR nth <= $14
    ORDER BY place
    LIMIT $4
)
/* END pick */
SELECT FROM placed;

-- The streams that have tasks, with the first task of each, in these spans of lanes. From the first
-- task of a stream, the index leads to that of the next one.

-- name: heads
WITH RECURSIVE head AS (
    SELECT
        span.first AS lane, (-1)::smallint AS level, NULL::bigint AS ready_at,
        NULL::uuid AS task_id, span.last
    FROM unnest($1::text::int[], $2::text::int[]) AS span (first, last)
    UNION ALL
    SELECT next.lane, next.level, next.ready_at, next.task_id, head.last
    FROM head CROSS JOIN LATERAL (
        SELECT lane, level, ready_at, task_id FROM fairlane.ready
        WHERE (lane, level) > (head.lane, head.level) AND lane <= head.last
        ORDER BY lane, level, ready_at, task_id
        LIMIT 1
    ) AS next
)
SELECT lane, level, ready_at, task_id::text, fairlane.now_us() FROM head WHERE level >= 0;

-- The first task of each arm that is not empty.

-- name: arm_heads
SELECT arm.n, head.ready_at, head.task_id
FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
    AS arm (lane, level, from_age, to_age, n)
CROSS JOIN LATERAL (
    SELECT ready_at, task_id FROM fairlane.ready
    WHERE
        lane = arm.lane AND level = arm.level
        AND ready_at <= fairlane.now_us() - arm.from_age
        AND ready_at > fairlane.now_us() - arm.to_age
    ORDER BY ready_at, task_id
    LIMIT 1
) AS head;

-- name: set_timeouts
UPDATE fairlane.content AS task SET timeout = sent.timeout
FROM unnest($1::text::uuid[], $2::text::float8[]) AS sent (task_id, timeout)
WHERE task.task_id = ANY ($1::text::uuid[]) AND task.task_id = sent.task_id;

-- name: granted
SELECT
    0, held.task_id::text, held.attempt, held.lane, held.level, task.payload, held.retry_count,
    task.max_retries, task.returns, task.timeout, task.created_at, held.ready_at, task.spec
FROM fairlane.held
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = held.task_id OFFSET 0
) AS task
WHERE held.worker_id = $1 AND held.claimed_at = $2;

-- Advisory locks end with the transaction and, unlike row locks, assign no transaction id. The
-- journal is ordered by transaction ids, so a claim must not get one before it looks for tasks. The
-- statement waits for the lock for everything, and leaves out types that another transaction has
-- locked.

-- name: lock_limits
WITH gate AS (DELETE FROM fairlane.gate),
everything AS MATERIALIZED (
    SELECT CASE WHEN $2::boolean THEN pg_advisory_xact_lock($3, 0) END
)
SELECT type FROM everything, unnest($1::text[]) AS limited (type)
WHERE pg_try_advisory_xact_lock($3, hashtext(type));

-- name: buckets
SELECT fairlane.now_us(), type, tokens, at FROM (SELECT) AS once
LEFT JOIN fairlane.buckets ON type = ANY ($1::text[]);

-- name: held
SELECT lane, count(*) FROM fairlane.held GROUP BY lane
UNION ALL
SELECT lane, count(*) FROM fairlane.lingering GROUP BY lane;

-- name: fill_buckets
INSERT INTO fairlane.buckets (type, tokens, at)
SELECT type, tokens, at FROM unnest($1::text[], $2::float8[], $3::bigint[])
    AS filled (type, tokens, at)
ON CONFLICT (type) DO UPDATE SET tokens = excluded.tokens, at = excluded.at;
