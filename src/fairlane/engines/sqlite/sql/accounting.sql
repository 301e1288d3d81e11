-- name: count
INSERT INTO tallies (lane, level, source, target, label, bucket, times, seconds)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET times = times + excluded.times, seconds = seconds + excluded.seconds;

-- name: deepen
INSERT INTO streams (lane, level, depth) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET depth = depth + excluded.depth;

-- name: append
INSERT INTO journal (at, entry) VALUES (?, ?);

-- name: trim
DELETE FROM journal WHERE id <= ?;
