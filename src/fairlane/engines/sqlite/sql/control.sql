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
INSERT INTO types (type, rate, concurrency, timeout)
VALUES (?1, coalesce(?2, 0), coalesce(?3, 0), coalesce(?4, 0))
ON CONFLICT DO UPDATE SET
    rate = coalesce(?2, rate),
    concurrency = coalesce(?3, concurrency),
    timeout = coalesce(?4, timeout);

-- name: set_breaker
UPDATE types SET breaker = ?, failures = NULL, open_until = NULL WHERE type = ?;

-- name: take_keys_again
INSERT OR IGNORE INTO uniques (key, task_id, states)
SELECT content.unique_key, content.task_id, content.unique_states
FROM json_each(?) AS sent CROSS JOIN content ON content.task_id = sent.value
WHERE content.unique_key IS NOT NULL
ORDER BY sent.key;
