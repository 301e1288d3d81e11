-- name: old
SELECT
    outcome.number, task.task_id, task.lane, task.level, outcome.attempt, outcome.completed_at
FROM outcome CROSS JOIN content AS task ON task.number = outcome.number
WHERE
    outcome.state = ?
    AND outcome.completed_at <= ?
    AND (outcome.completed_at, outcome.number) > (?, ?)
ORDER BY outcome.completed_at, outcome.number
LIMIT ?;

-- Tasks with dependents: whether one of those that are looked at has not ended, and whether there
-- are more.

-- name: dependents
SELECT
    parent.value,
    EXISTS (
        SELECT 1
        FROM (
            SELECT child FROM dependents WHERE dependents.parent = parent.value
            ORDER BY child
            LIMIT ?2
        ) AS each
        CROSS JOIN content ON content.task_id = each.child
        WHERE NOT EXISTS (SELECT 1 FROM outcome WHERE outcome.number = content.number)
    ),
    EXISTS (
        SELECT 1 FROM dependents WHERE dependents.parent = parent.value LIMIT 1 OFFSET ?2
    )
FROM json_each(?1) AS parent
WHERE EXISTS (SELECT 1 FROM dependents WHERE dependents.parent = parent.value);

-- name: forget_dependents
DELETE FROM dependents
WHERE parent = ?1 AND child IN (
    SELECT child FROM dependents WHERE parent = ?1 ORDER BY child LIMIT ?2
);

-- name: drop_dependents
DELETE FROM dependents WHERE parent IN (SELECT value FROM json_each(?));

-- name: drop_attempts
DELETE FROM attempts WHERE task_id IN (SELECT value FROM json_each(?));

-- name: drop_uniques
DELETE FROM uniques WHERE task_id IN (SELECT value FROM json_each(?));

-- name: drop_expiries
DELETE FROM expiries
WHERE (expires_at, number) IN (
    SELECT task.expires_at, task.number
    FROM json_each(?) AS gone CROSS JOIN content AS task ON task.number = gone.value
    WHERE task.expires_at IS NOT NULL
);

-- name: drop_outcomes
DELETE FROM outcome WHERE number IN (SELECT value FROM json_each(?));

-- name: drop_content
DELETE FROM content WHERE number IN (SELECT value FROM json_each(?));

-- name: drop_keys
DELETE FROM idempotency_keys
WHERE idempotency_key IN (
    SELECT idempotency_key FROM idempotency_keys WHERE expires_at <= ? LIMIT ?
);

-- name: drop_workers
DELETE FROM workers
WHERE worker_id IN (
    SELECT worker_id FROM workers
    WHERE status = 'dead' AND seen_at <= ? AND worker_id NOT IN (SELECT worker_id FROM held)
    LIMIT ?
);

-- name: drop_journal
DELETE FROM journal
WHERE id IN (
    SELECT id FROM (SELECT id, at FROM journal ORDER BY id LIMIT ?2)
    WHERE at <= ?1 AND id < (SELECT max(id) FROM journal)
);

-- name: blank_journal
-- The last entry stays, emptied: the next one's number has to be higher.
UPDATE journal SET entry = x''
WHERE id = (SELECT max(id) FROM journal) AND id = (SELECT min(id) FROM journal)
    AND at <= ? AND entry <> x'';
