-- A lane is removed in two steps, because submissions use lanes that they remember, without a lock.
-- First it is closed: a submission that begins now finds that out, and opens it again (see
-- submit.sql). It is removed once no transaction is left that may have begun before, if it is still
-- closed and has no task. Meanwhile it can be read and claimed from as before.

-- name: close
UPDATE fairlane.lanes SET closed_by = pg_current_xact_id()
WHERE
    id = ANY ($1::int[])
    -- One of the future was closed in another database, of which this is a copy.
    AND (closed_by IS NULL OR closed_by > pg_current_xact_id());

-- Transactions that can write have an id, or a snapshot that is older than those of the others.

-- name: removable
SELECT id FROM fairlane.lanes
WHERE
    id = ANY ($1::int[])
    AND closed_by < pg_snapshot_xmin(pg_current_snapshot())
    AND NOT EXISTS (
        SELECT FROM pg_stat_activity AS other
        WHERE
            other.datname = current_database()
            AND other.pid <> pg_backend_pid()
            AND age(other.backend_xmin) >= age(lanes.closed_by::xid)
    )
    AND 0 = (
        SELECT
            coalesce(sum(times * ((target <> NOWHERE)::int - (source <> NOWHERE)::int)), 0)
        FROM (
            SELECT times, source, target FROM fairlane.tallies WHERE tallies.lane = lanes.id
            UNION ALL
            SELECT times, source, target FROM fairlane.tally_deltas
            WHERE tally_deltas.lane = lanes.id
        ) AS counted
    );

-- Nobody folds deltas at the same time, or some would come back.

-- name: lock_tallies
SELECT pg_advisory_xact_lock($1);

-- name: remove
WITH tallies AS (
    DELETE FROM fairlane.tallies WHERE lane = ANY ($1::int[])
    RETURNING level, source, target, label, bucket, times, seconds
),
deltas AS (
    DELETE FROM fairlane.tally_deltas WHERE lane = ANY ($1::int[])
    RETURNING level, source, target, label, bucket, times, seconds
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT $2::int, level, source, target, label, bucket, sum(times), sum(seconds)
    FROM (SELECT * FROM tallies UNION ALL SELECT * FROM deltas) AS removed
    GROUP BY level, source, target, label, bucket
),
streams AS (
    DELETE FROM fairlane.streams WHERE lane = ANY ($1::int[])
)
DELETE FROM fairlane.lanes WHERE id = ANY ($1::int[]);
