-- name: lock_lanes
LOCK TABLE fairlane.lanes IN SHARE ROW EXCLUSIVE MODE;

-- A version is never used twice, not even if a failover has lost the last changes.

-- name: bump
UPDATE fairlane.catalogue SET version = greatest(version + 1, fairlane.now_us());

-- name: everything
SELECT
    version, paused, rate,
    (SELECT value FROM fairlane.documents WHERE kind = $1 AND id = $1) AS settings,
    (SELECT count(*) FROM fairlane.lanes) AS lanes
FROM fairlane.catalogue;

-- name: lanes
SELECT id, queue, type, capabilities FROM fairlane.lanes WHERE id > $1 ORDER BY id;

-- name: streams
SELECT number, lane, level FROM fairlane.streams WHERE number > $1 ORDER BY number;

-- name: add_lanes
INSERT INTO fairlane.lanes (queue, type, capabilities)
SELECT queue, type, capabilities
FROM unnest($1::text[], $2::text[], $3::text[]) AS lane (queue, type, capabilities)
RETURNING id, queue, type, capabilities;

-- name: reopen
UPDATE fairlane.lanes SET closed_by = NULL WHERE id = ANY ($1::int[]) AND closed_by IS NOT NULL;

-- name: add_streams
INSERT INTO fairlane.streams (lane, level)
SELECT lane, level FROM unnest($1::int[], $2::smallint[]) AS stream (lane, level)
ON CONFLICT DO NOTHING;

-- name: types
SELECT type, paused, rate, concurrency, breaker, circuit, timeout FROM fairlane.types;

-- name: paused_queues
SELECT queue FROM fairlane.paused_queues;
