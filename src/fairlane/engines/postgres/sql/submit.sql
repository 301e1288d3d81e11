-- Tasks of a batch mostly share their options, so those are sent once per kind: `kind` is a
-- position in the arrays from $5 on. An array that would hold nothing but NULL is sent as NULL.
-- Long arrays of numbers and ids are sent as literals, which clients make several times faster, and
-- all payloads as one ($3) with where each ends ($14) and how long it is ($15), for the same reason.

-- name: submit
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
stored AS (
    INSERT INTO fairlane.content (
        task_id, created_at, run_at, ready_at, expires_at, timeout, lane, level, max_retries,
        payload, spec, idempotency_key
    )
    SELECT
        task_id, now, coalesce(($8::bigint[])[kind], now + ($7::bigint[])[kind]),
        greatest(now, coalesce(($8::bigint[])[kind], now + ($7::bigint[])[kind])),
        ($9::bigint[])[kind], ($10::float8[])[kind], ($5::int[])[kind], ($6::smallint[])[kind],
        ($11::smallint[])[kind], substring($3::bytea, until - length + 1, length),
        ($12::bytea[])[kind], idempotency_key
    FROM clock, unnest(
        $1::text::uuid[], $2::text::smallint[], $4::text[], $14::text::int[], $15::text::int[]
    ) AS sent (task_id, kind, idempotency_key, until, length)
    RETURNING task_id, lane, level, run_at, expires_at
),
queued AS (
    INSERT INTO fairlane.ready (task_id, ready_at, expires_at, updated_at, lane, level)
    SELECT task_id, now, expires_at, now, lane, level FROM clock, stored WHERE run_at <= now
),
{scheduled}
-- The books, as in ledger.sql but for what no submission has: attempts, durations, labels.
booked AS MATERIALIZED (
    SELECT lane, level, run_at > now AS later, count(*) AS times, array_agg(task_id) AS task_ids
    FROM clock, stored
    GROUP BY lane, level, run_at > now
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids)
    SELECT now, 'submit', lane, level, task_ids FROM clock, booked
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT lane, level, 0, CASE WHEN later THEN 1 ELSE 2 END, '', -1, times, 0 FROM booked
)
-- $13: the lock that waiters share. Whoever gets it alone knows that nobody waits.
SELECT
    now,
    CASE WHEN pg_try_advisory_lock($13) THEN NOT pg_advisory_unlock($13) ELSE true END AS awaited
FROM clock;

-- In the place of {scheduled}, where some tasks may have to wait.

-- name: scheduled
scheduled AS (
    INSERT INTO fairlane.waiting (
        task_id, due_at, ready_at, expires_at, updated_at, lane, level, state
    )
    SELECT task_id, run_at, run_at, expires_at, now, lane, level, 1 FROM clock, stored
    WHERE run_at > now
),

-- name: stored
SELECT task_id, state, created_at FROM fairlane.standing WHERE task_id = ANY ($1::text::uuid[]);

-- Waits for whoever is taking the same key at this moment. Sorted, so that two batches cannot wait
-- for each other.

-- name: take_keys
INSERT INTO fairlane.idempotency_keys AS held (idempotency_key, task_id, fingerprint, expires_at)
SELECT idempotency_key, task_id, fingerprint, fairlane.now_us() + $4
FROM unnest($1::text[], $2::text::uuid[], $3::bytea[]) AS asked (idempotency_key, task_id, fingerprint)
ON CONFLICT (idempotency_key) DO UPDATE
SET task_id = excluded.task_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
WHERE held.expires_at <= fairlane.now_us()
RETURNING idempotency_key;

-- name: key_holders
SELECT idempotency_key, task_id, fingerprint FROM fairlane.idempotency_keys
WHERE idempotency_key = ANY ($1::text[])
FOR UPDATE;

-- name: inherit_keys
UPDATE fairlane.idempotency_keys AS held
SET task_id = asked.task_id,
    fingerprint = asked.fingerprint,
    expires_at = fairlane.now_us() + $4
FROM unnest($1::text[], $2::text::uuid[], $3::bytea[]) AS asked (idempotency_key, task_id, fingerprint)
WHERE held.idempotency_key = asked.idempotency_key;
