-- name: fold_tallies
INSERT INTO tallies (lane, level, source, target, label, bucket, times, seconds)
SELECT ?1, level, source, target, label, bucket, sum(times), sum(seconds)
FROM tallies
WHERE lane IN (SELECT value FROM json_each(?2))
GROUP BY level, source, target, label, bucket
ON CONFLICT DO UPDATE SET times = times + excluded.times, seconds = seconds + excluded.seconds;

-- name: drop_tallies
DELETE FROM tallies WHERE lane IN (SELECT value FROM json_each(?));

-- name: drop_streams
DELETE FROM streams WHERE lane IN (SELECT value FROM json_each(?));

-- name: drop_lanes
DELETE FROM lanes WHERE id IN (SELECT value FROM json_each(?));
