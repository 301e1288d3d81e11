-- name: situation
SELECT
    catalogue.version,
    worker.status,
    worker.request_id,
    worker.claimed_at,
    worker.seen_at,
    worker.lease,
    (SELECT min(due_at) FROM waiting),
    (SELECT min(expires_at) FROM expiries),
    EXISTS (SELECT 1 FROM ended_parents)
FROM catalogue LEFT JOIN workers AS worker ON worker.worker_id = ?;

-- name: seen
UPDATE workers SET seen_at = ?, request_id = ?, claimed_at = ? WHERE worker_id = ?;

-- name: streams
SELECT lane, level FROM streams WHERE depth > 0;

-- The streams that have tasks, with the first task of each, in these spans of lanes. From the first
-- task of a stream, the index leads to that of the next one.

-- name: heads
WITH RECURSIVE head (lane, level, ready_at, task_id, until) AS (
    SELECT json_extract(value, '$[0]'), -1, NULL, NULL, json_extract(value, '$[1]')
    FROM json_each(?)
    UNION ALL
    SELECT first.lane, first.level, first.ready_at, first.task_id, head.until
    FROM head CROSS JOIN ready AS first
    ON (first.lane, first.level, first.ready_at, first.task_id) = (
        SELECT lane, level, ready_at, task_id FROM ready
        WHERE (lane, level) > (head.lane, head.level) AND lane <= head.until
        ORDER BY lane, level, ready_at, task_id
        LIMIT 1
    )
)
SELECT lane, level, ready_at, task_id FROM head WHERE level >= 0;

-- name: stream
SELECT ready_at, task_id FROM ready WHERE lane = ? AND level = ? ORDER BY ready_at, task_id;

-- name: hold
INSERT INTO held (
    task_id, number, lane, level, ready_at, attempt, retry_count, version, worker_id, claimed_at
)
SELECT
    task_id, number, lane, level, ready_at, attempt + 1, retry_count, version + 1, ?, ?
FROM ready
WHERE lane = ? AND level = ?
ORDER BY ready_at, task_id
LIMIT ?;

-- name: take
SELECT
    ready.task_id, ready.attempt + 1, ready.lane, ready.level, task.payload, ready.retry_count,
    task.max_retries, task.returns, task.timeout, task.created_at, ready.ready_at, task.spec
FROM ready CROSS JOIN content AS task ON task.number = ready.number
WHERE ready.lane = ? AND ready.level = ?
ORDER BY ready.ready_at, ready.task_id
LIMIT ?;

-- name: leave
DELETE FROM ready WHERE lane = ? AND level = ? AND (ready_at, task_id) <= (?, ?);

-- name: set_timeout
UPDATE content SET timeout = ? WHERE task_id = ?;

-- name: granted
SELECT
    task.task_id, held.attempt, task.lane, task.level, task.payload, held.retry_count,
    task.max_retries, task.returns, task.timeout, task.created_at, task.ready_at, task.spec
FROM held CROSS JOIN content AS task ON task.number = held.number
WHERE held.worker_id = ? AND held.claimed_at = ?;

-- name: held
SELECT lane, count(*)
FROM (SELECT lane FROM held UNION ALL SELECT lane FROM lingering)
GROUP BY lane;

-- name: buckets
SELECT type, tokens, at FROM buckets WHERE type IN (SELECT value FROM json_each(?));

-- name: fill_bucket
INSERT INTO buckets (type, tokens, at) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET tokens = excluded.tokens, at = excluded.at;
