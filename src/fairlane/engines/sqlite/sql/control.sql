-- name: pause_everything
UPDATE catalogue SET paused = ?;

-- name: pause_queue
INSERT INTO paused_queues (queue) VALUES (?) ON CONFLICT DO NOTHING;

-- name: resume_queue
DELETE FROM paused_queues WHERE queue = ?;

-- name: pause_type
INSERT INTO types (type, paused) VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused;

-- name: rate_everything
UPDATE catalogue SET rate = ?;

-- name: limit_type
INSERT INTO types (type, rate, concurrency) VALUES (?1, coalesce(?2, 0), coalesce(?3, 0))
ON CONFLICT DO UPDATE SET rate = coalesce(?2, rate), concurrency = coalesce(?3, concurrency);
