-- Transactions end in another order than they begin, so entries are read only below the oldest
-- transaction that is still running.

-- Entries, each with the newest entry that is no longer kept, and the first transaction that has
-- written none yet. If there are none, one row without an entry.

-- name: events
SELECT
    floor.xid::text, floor.n, pg_snapshot_xmax(pg_current_snapshot())::text AS next_xid,
    entry.xid::text, entry.n, at, verb, worker_id, lane, level, task_ids,
    attempts, seconds
FROM fairlane.journal_floor AS floor
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.journal
    WHERE
        (xid, n) > ($1::text::xid8, $2::bigint)
        AND xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY xid, n
    LIMIT $3
) AS entry ON true
ORDER BY entry.xid, entry.n;

-- name: tail
(
    SELECT xid::text, n FROM fairlane.journal
    WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY xid DESC, n DESC
    LIMIT 1
)
UNION ALL
SELECT xid::text, n FROM fairlane.journal_floor;

-- Whether a transaction of another cluster wrote entries: this one has not come that far.

-- name: is_restored
SELECT
    EXISTS (
        SELECT FROM fairlane.journal_floor WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())
    )
    OR EXISTS (
        SELECT FROM fairlane.journal WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())
    );

-- Every cursor from before is older than the new floor, which resets its reader. All entries are
-- renumbered; they are found through the index, as in every statement.

-- name: renumber
WITH raised AS (UPDATE fairlane.journal_floor SET xid = pg_current_xact_id(), n = 0)
UPDATE fairlane.journal SET xid = pg_current_xact_id() WHERE xid >= '0'::xid8;
