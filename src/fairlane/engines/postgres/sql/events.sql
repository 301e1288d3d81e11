-- Transactions end in another order than they begin: what lies above the oldest one still running
-- may not be complete yet.

-- Each entry beside what is no longer kept; one row without an entry when there is none.

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
