-- name: chores
SELECT
    (SELECT min(due_at) FROM waiting),
    (SELECT min(expires_at) FROM expiries),
    EXISTS (SELECT 1 FROM ended_parents);

-- name: more_due
SELECT EXISTS (SELECT 1 FROM waiting WHERE due_at <= ? ORDER BY due_at LIMIT 1 OFFSET ?);

-- name: due
SELECT task.number, task.task_id, task.lane, task.level, task.ready_at, waiting.state,
    waiting.attempt, waiting.retry_count, waiting.version, NULL, NULL, NULL
FROM waiting CROSS JOIN content AS task ON task.number = waiting.number
WHERE waiting.due_at <= ?
ORDER BY waiting.due_at
LIMIT ?;

-- name: next_due
SELECT min(due_at) FROM waiting WHERE due_at > ?;

-- The streams that have a due task, with the first one of each. From the first task of a stream, the
-- index leads to that of the next one.

-- name: due_heads
WITH RECURSIVE head (lane, level, due_at, task_id, next) AS (
    SELECT -1, -1, NULL, NULL, (
        SELECT number FROM waiting
        WHERE due_at IS NOT NULL
        ORDER BY lane, level, due_at, task_id
        LIMIT 1
    )
    UNION ALL
    SELECT task.lane, task.level, task.due_at, task.task_id, coalesce(
        (
            SELECT number FROM waiting
            WHERE due_at IS NOT NULL AND lane = task.lane AND level > task.level
            ORDER BY level, due_at, task_id
            LIMIT 1
        ),
        (
            SELECT number FROM waiting
            WHERE due_at IS NOT NULL AND lane > task.lane
            ORDER BY lane, level, due_at, task_id
            LIMIT 1
        )
    )
    FROM head CROSS JOIN waiting AS task ON task.number = head.next
)
SELECT lane, level, due_at, task_id FROM head WHERE due_at <= ?;

-- name: due_stream
SELECT due_at, task_id FROM waiting
WHERE lane = ? AND level = ? AND due_at <= ?
ORDER BY due_at, task_id;

-- name: due_of_stream
SELECT task.number, task.task_id, task.lane, task.level, task.ready_at, waiting.state,
    waiting.attempt, waiting.retry_count, waiting.version, NULL, NULL, NULL
FROM waiting CROSS JOIN content AS task ON task.number = waiting.number
WHERE waiting.lane = ? AND waiting.level = ? AND waiting.due_at <= ?
ORDER BY waiting.due_at, waiting.task_id
LIMIT ?;

-- name: queue
INSERT INTO ready (
    lane, level, ready_at, task_id, number, attempt, retry_count, version, updated_at
)
SELECT
    task.lane, task.level, task.ready_at, task.task_id, task.number, waiting.attempt,
    waiting.retry_count, waiting.version + 1, ?
FROM json_each(?) AS due
CROSS JOIN waiting ON waiting.number = due.value
CROSS JOIN content AS task ON task.number = due.value;

-- name: unwait
DELETE FROM waiting WHERE number IN (SELECT value FROM json_each(?));

-- name: expiring
SELECT expires_at, number FROM expiries WHERE expires_at <= ? ORDER BY expires_at LIMIT ?;

-- name: drop_expiry
DELETE FROM expiries WHERE expires_at = ? AND number = ?;
