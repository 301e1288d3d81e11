-- name: version
SELECT version FROM catalogue;

-- name: bump
UPDATE catalogue SET version = version + 1;

-- name: clock_offset
SELECT clock_offset FROM catalogue;

-- name: shift_clock
UPDATE catalogue SET clock_offset = clock_offset + ?;

-- name: everything
SELECT
    version, paused, rate, (SELECT value FROM documents WHERE kind = ?1 AND id = ?1) AS settings
FROM catalogue;

-- name: lanes
SELECT id, queue, type, capabilities FROM lanes;

-- name: add_lane
INSERT INTO lanes (queue, type, capabilities) VALUES (?, ?, ?) RETURNING id;

-- name: count_lanes
SELECT count(*) FROM lanes;

-- name: types
SELECT type, paused, rate, concurrency, breaker, open_until, timeout FROM types;

-- name: paused_queues
SELECT queue FROM paused_queues;
