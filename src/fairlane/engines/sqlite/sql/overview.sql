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

-- The samples before and after a time.

-- name: nearest
SELECT value FROM (
    SELECT value FROM documents WHERE kind = ?1 AND at <= ?2 ORDER BY at DESC LIMIT 1
)
UNION ALL
SELECT value FROM (SELECT value FROM documents WHERE kind = ?1 AND at > ?2 ORDER BY at LIMIT 1);
