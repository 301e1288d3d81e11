-- The part `accounting` is inserted into statements that move tasks. They have a `clock` and a
-- `moved` with these columns.

-- name: accounting
WITH clock AS (SELECT fairlane.now_us() AS now),
moved AS (
    SELECT
        '' AS verb, NULL::text AS worker_id, 0 AS lane, 0::smallint AS level, NULL::uuid AS task_id,
        0 AS attempt, QUEUED AS source, EXECUTING AS target, '' AS label, UNTIMED AS bucket,
        NULL::float8 AS seconds
)
/* BEGIN accounting */,
grouped AS MATERIALIZED (
    SELECT
        verb, worker_id, lane, level, source, target, label, bucket, count(*) AS times,
        sum(seconds) AS spent, array_agg(task_id) AS task_ids, array_agg(attempt) AS attempts,
        array_agg(seconds) AS seconds
    FROM moved
    GROUP BY verb, worker_id, lane, level, source, target, label, bucket
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, worker_id, lane, level, task_ids, attempts, seconds)
    SELECT
        now, verb, worker_id, lane, level, task_ids, attempts,
        -- How long runs took; of claims, how long tasks waited is only counted.
        CASE WHEN source = EXECUTING AND spent IS NOT NULL THEN seconds END
    FROM clock, grouped
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT lane, level, source, target, label, bucket, times, coalesce(spent, 0) FROM grouped
)
/* END accounting */
SELECT FROM moved;

-- name: mention
INSERT INTO fairlane.journal (at, verb, worker_id)
SELECT fairlane.now_us(), $1, worker_id FROM unnest($2::text[]) AS worker (worker_id);

-- name: count
INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
SELECT lane, level, source, target, label, bucket, count(*), 0
FROM unnest($1::int[], $2::smallint[], $3::smallint[], $4::smallint[], $5::text[], $6::smallint[])
    AS key (lane, level, source, target, label, bucket)
GROUP BY lane, level, source, target, label, bucket;

-- name: fold
WITH alone AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1) AS ok),
folded AS (
    DELETE FROM fairlane.tally_deltas WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM fairlane.tally_deltas WHERE (SELECT ok FROM alone)
        LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING lane, level, source, target, label, bucket, times, seconds
)
INSERT INTO fairlane.tallies AS tally (lane, level, source, target, label, bucket, times, seconds)
SELECT lane, level, source, target, label, bucket, sum(times), sum(seconds)
FROM folded
GROUP BY lane, level, source, target, label, bucket
ON CONFLICT (lane, level, source, target, label, bucket) DO UPDATE
SET times = tally.times + excluded.times, seconds = tally.seconds + excluded.seconds;

-- $2: how many entries to delete at most, $3: how many to keep, $4: entries up to this time are
-- deleted even so. Deletes from the oldest entry up to the first that is kept. Entries that readers
-- cannot see yet are kept: a transaction that is still open may write entries before them.

-- name: trim
WITH alone AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1) AS ok),
gone AS (
    DELETE FROM fairlane.journal WHERE ctid = ANY (ARRAY(
        SELECT entry.tid
        FROM (
            SELECT
                oldest.tid,
                bool_and(
                    oldest.n <= (SELECT last_value FROM fairlane.journal_n_seq) - $3
                    OR oldest.at <= $4
                ) OVER (ORDER BY oldest.xid, oldest.n) AS may_go
            FROM (
                SELECT ctid AS tid, xid, n, at FROM fairlane.journal
                WHERE
                    xid < pg_snapshot_xmin(pg_current_snapshot())
                    AND (SELECT ok FROM alone)
                ORDER BY xid, n
                LIMIT $2
            ) AS oldest
        ) AS entry
        WHERE entry.may_go
    ))
    RETURNING xid, n
),
newest AS (SELECT xid, n FROM gone ORDER BY xid DESC, n DESC LIMIT 1),
raised AS (
    UPDATE fairlane.journal_floor AS floor SET xid = newest.xid, n = newest.n
    FROM newest
    WHERE (floor.xid, floor.n) < (newest.xid, newest.n)
)
SELECT count(*) FROM gone;
