-- Tasks of a batch mostly share their options, so those are sent once per kind ($6 on), and tasks
-- in the order of their kinds: those of a kind are a slice of the ids ($1). All payloads are one
-- value ($2), with the positions where each ends ($3). Long lists of ids and numbers are sent as
-- array literals, which clients build several times faster. A column that holds only NULL is sent
-- as NULL.
--
-- A large batch is stored in parts, by several statements in a transaction. The first one reads the
-- clock (now), and its time is a parameter of the others: tasks of a batch have one time.
--
-- The whole statement is for tasks that depend on others, have dependents or are unique. A task
-- that waits for its parents (bound) is not due at any time; the end of a task that has dependents
-- or a unique key takes more than moving its row (linked).

-- name: submit
WITH sent AS MATERIALIZED (
    SELECT
        /* BEGIN now */ fairlane.now_us() /* END now */ AS now,
        $1::text::uuid[] AS task_ids, $3::text::int[] AS bounds
),
/* BEGIN kinds */
kinds AS MATERIALIZED (
    SELECT
        since, until, lane, level, coalesce(run_at, now + delay) AS run_at,
        CASE WHEN NOT bound THEN coalesce(run_at, now + delay) END AS due_at, expires_at, timeout,
        max_retries, spec, linked
    FROM sent, unnest(
        $6::int[], $7::int[], $8::int[], $9::smallint[], $10::bigint[], $11::bigint[],
        $12::bigint[], $13::float8[], $14::smallint[], $15::bytea[], $16::boolean[], $17::boolean[]
    ) AS kind (
        since, until, lane, level, delay, run_at, expires_at, timeout, max_retries, spec, bound,
        linked
    )
)
/* END kinds */,
-- The tasks of one journal entry are a slice of the ids as well: kinds are sorted by lane, level
-- and time.
/* BEGIN grouped */
grouped AS MATERIALIZED (
    SELECT
        lane, level, (due_at <= now) IS TRUE AS at_once, min(since) AS since, max(until) AS until
    FROM sent, kinds
    GROUP BY lane, level, (due_at <= now) IS TRUE
)
/* END grouped */,
stored AS (
    INSERT INTO fairlane.content (
        task_id, created_at, run_at, ready_at, expires_at, timeout, lane, level, max_retries,
        payload, spec, idempotency_key
        /* BEGIN unique */, unique_key, unique_states /* END unique */
    )
    SELECT
        task_id, now, run_at, greatest(now, run_at), expires_at, timeout, lane, level, max_retries,
        substring($2::bytea, begins + 1, ends - begins), spec, idempotency_key
        /* BEGIN unique */, unique_key, unique_states /* END unique */
    FROM (
        SELECT
            unnest(task_ids[since:until]) AS task_id,
            unnest(bounds[since - 1:until - 1]) AS begins, unnest(bounds[since:until]) AS ends,
            unnest(($4::text[])[since:until]) AS idempotency_key,
            /* BEGIN unique */
            unnest(($18::bytea[])[since:until]) AS unique_key,
            unnest(($19::smallint[])[since:until]) AS unique_states,
            /* END unique */
            now, run_at, expires_at, timeout, lane, level, max_retries, spec
        FROM sent, kinds
    ) AS task
),
queued AS (
    INSERT INTO fairlane.ready (task_id, ready_at, expires_at, updated_at, lane, level, linked)
    SELECT unnest(task_ids[since:until]), now, expires_at, now, lane, level, linked FROM sent, kinds
    WHERE due_at <= now
),
/* BEGIN scheduled */
scheduled AS (
    INSERT INTO fairlane.waiting (
        task_id, due_at, ready_at, expires_at, updated_at, lane, level, state, linked
    )
    SELECT
        unnest(task_ids[since:until]), due_at, greatest(now, run_at), expires_at, now, lane, level,
        SCHEDULED, linked
    FROM sent, kinds
    WHERE (due_at <= now) IS NOT TRUE
),
/* END scheduled */
-- As in accounting.sql, but without what no submission has: attempts, durations, labels.
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids)
    SELECT now, 'submit', lane, level, task_ids[since:until] FROM sent, grouped
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT
        lane, level, NOWHERE, CASE WHEN at_once THEN QUEUED ELSE SCHEDULED END, '', UNTIMED,
        until - since + 1, 0
    FROM grouped
)
-- $5: the lock that waiting workers share. A submission that gets it exclusively knows that none
-- waits.
SELECT
    now,
    CASE WHEN pg_try_advisory_lock($5) THEN NOT pg_advisory_unlock($5) ELSE true END AS awaited
    -- If a lane is closed or gone, everything is rolled back by an error that is known by its code:
    -- ln(0) is 2201E. A lane that is newer than all that this transaction sees was opened for it.
    /* BEGIN lanes */,
    (
        /* BEGIN open */
        SELECT min(ln((lane.id = kinds.lane AND lane.closed_by IS NULL)::int::float8))
        FROM kinds
        CROSS JOIN LATERAL (
            SELECT id, closed_by FROM fairlane.lanes WHERE id >= kinds.lane ORDER BY id LIMIT 1
        ) AS lane
        /* END open */
    ) AS open
    /* END lanes */
    -- If one of these ids is that of a deleted task, everything is rolled back by an error that is
    -- known by its code (errors.py): its attempts go on. A function that raises would be loaded by
    -- every session.
    /* BEGIN guard */,
    CASE
        WHEN EXISTS (SELECT FROM fairlane.documents WHERE kind = 'fence')
        THEN (
            SELECT 1 / (version - version) FROM fairlane.documents
            WHERE kind = 'fence' AND id = ANY ($1::text::text[])
            LIMIT 1
        )
    END AS fenced
    /* END guard */
    -- A store that requires encryption refuses plain text in the same way, by another error.
    /* BEGIN plain */,
    (
        SELECT sqrt(-version) FROM fairlane.documents
        WHERE kind = 'encryption' AND id = 'required'
    ) AS refused
    /* END plain */
FROM sent;

-- name: go_on
WITH fences AS MATERIALIZED (
    SELECT id::uuid AS task_id, convert_from(value, 'UTF8')::int AS attempt
    FROM fairlane.documents
    WHERE kind = 'fence' AND id = ANY ($1::text::text[]) AND expires_at > fairlane.now_us()
),
queued AS (
    UPDATE fairlane.ready SET attempt = fences.attempt
    FROM fences
    WHERE
        ready.ctid = ANY (ARRAY(
            SELECT place.ctid
            FROM fences AS fence
            CROSS JOIN LATERAL (
                SELECT * FROM fairlane.content WHERE content.task_id = fence.task_id OFFSET 0
            ) AS task
            CROSS JOIN LATERAL (
                SELECT queued.ctid FROM fairlane.ready AS queued
                WHERE
                    queued.lane = task.lane AND queued.level = task.level
                    AND queued.ready_at = task.ready_at AND queued.task_id = task.task_id
                OFFSET 0
            ) AS place
        ))
        AND ready.task_id = fences.task_id
)
UPDATE fairlane.waiting SET attempt = fences.attempt
FROM fences
WHERE
    waiting.task_id = ANY (ARRAY(SELECT task_id FROM fences))
    AND waiting.task_id = fences.task_id;

-- The kinds of tasks that are neither unique nor related to others.

-- name: several_kinds
WITH sent AS (SELECT fairlane.now_us() AS now),
/* BEGIN kinds */
kinds AS MATERIALIZED (
    SELECT
        since, until, lane, level, coalesce(run_at, now + delay) AS run_at,
        coalesce(run_at, now + delay) AS due_at, expires_at, timeout, max_retries, spec,
        false AS linked
    FROM sent, unnest(
        $6::int[], $7::int[], $8::int[], $9::smallint[], $10::bigint[], $11::bigint[],
        $12::bigint[], $13::float8[], $14::smallint[], $15::bytea[]
    ) AS kind (
        since, until, lane, level, delay, run_at, expires_at, timeout, max_retries, spec
    )
)
/* END kinds */
SELECT FROM kinds;

-- The common batch has one kind, and needs no arrays of options and no grouping. That saves a
-- twentieth of the time for 100 tasks.

-- name: one_kind
WITH sent AS (SELECT fairlane.now_us() AS now),
/* BEGIN kinds */
kinds AS MATERIALIZED (
    SELECT
        $6::int AS since, $7::int AS until, $8::int AS lane, $9::smallint AS level,
        coalesce($11::bigint, now + $10::bigint) AS run_at,
        coalesce($11::bigint, now + $10::bigint) AS due_at, $12::bigint AS expires_at,
        $13::float8 AS timeout, $14::smallint AS max_retries, $15::bytea AS spec, false AS linked
    FROM sent
)
/* END kinds */,
/* BEGIN grouped */
grouped AS (
    SELECT lane, level, due_at <= now AS at_once, since, until FROM sent, kinds
)
/* END grouped */,
open AS (
    /* BEGIN open */
    SELECT ln((lane.id = $8::int AND lane.closed_by IS NULL)::int::float8)
    FROM fairlane.lanes AS lane
    WHERE lane.id >= $8::int
    ORDER BY lane.id
    LIMIT 1
    /* END open */
)
SELECT FROM grouped, open;
