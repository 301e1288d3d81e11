-- name: streams
SELECT
    lane,
    level,
    depth,
    (SELECT min(ready_at) FROM ready WHERE lane = streams.lane AND level = streams.level),
    (SELECT max(ready_at) FROM ready WHERE lane = streams.lane AND level = streams.level)
FROM streams
WHERE depth > 0;

-- name: buckets
SELECT type, tokens, at FROM buckets;

-- name: nearest
SELECT sample FROM (SELECT sample FROM samples WHERE at <= ?1 ORDER BY at DESC LIMIT 1)
UNION ALL
SELECT sample FROM (SELECT sample FROM samples WHERE at > ?1 ORDER BY at LIMIT 1);

-- name: newest
SELECT max(at) FROM samples;

-- name: add_sample
INSERT INTO samples (at, sample) VALUES (?, ?);

-- name: samples
SELECT sample FROM samples WHERE at >= ? ORDER BY at LIMIT ?;

-- A term more than twice as long as this one is of a clock that has gone back since.

-- name: elect
INSERT INTO roles (role, holder, expires_at) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE holder = excluded.holder OR expires_at <= ?4 OR expires_at - ?4 > 2 * (?3 - ?4);
