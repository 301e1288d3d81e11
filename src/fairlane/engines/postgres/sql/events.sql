-- Transactions end in another order than they begin, so entries are read only below the oldest
-- transaction that is still running.

-- Entries, each with the newest entry that is no longer kept. If there are none, one row without an
-- entry.

-- name: events
SELECT
    floor.xid::text, floor.n, entry.xid::text, entry.n, at, verb, worker_id, lane, level, task_ids,
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
