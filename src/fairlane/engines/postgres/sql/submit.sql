-- Tasks of a batch mostly share their options, so those are sent once per kind ($6 on),
-- and tasks in the order of their kinds: those of a kind are a slice of the ids ($1). All payloads
-- are one value ($2), with where each ends ($3). Ids and numbers that are many are sent as literals,
-- which clients make several times faster. What would hold nothing but NULL is sent as NULL.

-- name: submit
WITH sent AS MATERIALIZED (
    SELECT fairlane.now_us() AS now, $1::text::uuid[] AS task_ids, $3::text::int[] AS bounds
),
{kinds}
stored AS (
    INSERT INTO fairlane.content (
        task_id, created_at, run_at, ready_at, expires_at, timeout, lane, level, max_retries,
        payload, spec, idempotency_key{unique}
    )
    SELECT
        task_id, now, run_at, greatest(now, run_at), expires_at, timeout, lane, level, max_retries,
        substring($2::bytea, begins + 1, ends - begins), spec, idempotency_key{unique}
    FROM (
        SELECT
            unnest(task_ids[since:until]) AS task_id,
            unnest(bounds[since - 1:until - 1]) AS begins, unnest(bounds[since:until]) AS ends,
            unnest(($4::text[])[since:until]) AS idempotency_key,
            {uniques}
            now, run_at, expires_at, timeout, lane, level, max_retries, spec
        FROM sent, kinds
    ) AS task
),
queued AS (
    INSERT INTO fairlane.ready (task_id, ready_at, expires_at, updated_at, lane, level, linked)
    SELECT unnest(task_ids[since:until]), now, expires_at, now, lane, level, linked FROM sent, kinds
    WHERE due_at <= now
),
{scheduled}
-- The books, as in ledger.sql but for what no submission has: attempts, durations, labels.
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids)
    SELECT now, 'submit', lane, level, task_ids[since:until] FROM sent, booked
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT
        lane, level, NOWHERE, CASE WHEN at_once THEN QUEUED ELSE SCHEDULED END, '', UNTIMED, until - since + 1, 0
    FROM booked
)
-- $5: the lock that waiters share. Whoever gets it alone knows that nobody waits.
SELECT
    now,
    CASE WHEN pg_try_advisory_lock($5) THEN NOT pg_advisory_unlock($5) ELSE true END AS awaited
FROM sent;

-- In the place of {kinds}. What one entry of the journal tells of (`booked`) is a slice, too: kinds
-- are sorted by lane, level and time. The common batch is all of one kind, and needs no arrays of
-- options and no grouping: that is worth a twentieth of its time when it has 100 tasks.

-- name: one_kind
kinds AS MATERIALIZED (
    SELECT
        $6::int AS since, $7::int AS until, $8::int AS lane, $9::smallint AS level,
        coalesce($11::bigint, now + $10::bigint) AS run_at,
        coalesce($11::bigint, now + $10::bigint) AS due_at, $12::bigint AS expires_at,
        $13::float8 AS timeout, $14::smallint AS max_retries, $15::bytea AS spec, false AS linked
    FROM sent
),
booked AS (
    SELECT lane, level, due_at <= now AS at_once, since, until FROM sent, kinds
),

-- name: several_kinds
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
),
{grouped}

-- What is tied to others: it waits for its parents, and so is never due by itself (bound), or its
-- end will take more than a row that moves (linked).

-- name: tied_kinds
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
),
{grouped}

-- name: grouped
booked AS MATERIALIZED (
    SELECT
        lane, level, (due_at <= now) IS TRUE AS at_once, min(since) AS since, max(until) AS until
    FROM sent, kinds
    GROUP BY lane, level, (due_at <= now) IS TRUE
),

-- In the place of {scheduled}, where some tasks may have to wait.

-- name: scheduled
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

-- In the place of {unique} and {uniques}, where some tasks are unique.

-- name: unique
, unique_key, unique_states

-- name: uniques
unnest(($18::bytea[])[since:until]) AS unique_key,
unnest(($19::smallint[])[since:until]) AS unique_states,
