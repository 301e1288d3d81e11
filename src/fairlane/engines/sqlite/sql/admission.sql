-- Who is let in: see admission.py.

-- name: stored
SELECT task_id, state, created_at FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: contents
SELECT task_id, lane, payload, spec FROM content WHERE task_id IN (SELECT value FROM json_each(?));

-- name: keys
SELECT idempotency_key, task_id, fingerprint FROM idempotency_keys
WHERE idempotency_key IN (SELECT value FROM json_each(?)) AND expires_at > ?;

-- name: take_key
INSERT INTO idempotency_keys (idempotency_key, task_id, fingerprint, expires_at)
VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    task_id = excluded.task_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at;

-- name: holder
SELECT tasks.task_id, tasks.state, tasks.created_at
FROM uniques CROSS JOIN tasks ON tasks.task_id = uniques.task_id
WHERE uniques.key = ?;

-- name: take_unique
INSERT INTO uniques (key, task_id, states) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET task_id = excluded.task_id, states = excluded.states;

-- name: keep_hold
UPDATE content SET unique_key = ?, unique_states = ? WHERE task_id = ?;
