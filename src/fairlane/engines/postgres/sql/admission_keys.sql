-- name: stored
SELECT task_id::text, state, created_at FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);

-- Waits for transactions that are taking the same keys. Keys are sorted, so that two batches cannot
-- wait for each other.

-- name: contents
SELECT task.task_id::text, lanes.type, task.payload, task.spec
FROM fairlane.content AS task JOIN fairlane.lanes ON lanes.id = task.lane
WHERE task.task_id = ANY ($1::text::uuid[]);

-- name: take_keys
INSERT INTO fairlane.idempotency_keys AS held (idempotency_key, task_id, fingerprint, expires_at)
SELECT idempotency_key, task_id, fingerprint, fairlane.now_us() + $4
FROM unnest($1::text[], $2::text::uuid[], $3::bytea[])
    AS asked (idempotency_key, task_id, fingerprint)
ON CONFLICT (idempotency_key) DO UPDATE
SET task_id = excluded.task_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
WHERE held.expires_at <= fairlane.now_us()
RETURNING idempotency_key;

-- name: key_holders
SELECT held.idempotency_key, held.fingerprint, task.task_id::text, task.state, task.created_at
FROM fairlane.idempotency_keys AS held
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.standing WHERE standing.task_id = held.task_id OFFSET 0
) AS task
WHERE held.idempotency_key = ANY ($1::text[]);

-- name: lock_keys
SELECT idempotency_key FROM fairlane.idempotency_keys
WHERE idempotency_key = ANY ($1::text[])
ORDER BY idempotency_key
FOR UPDATE;

-- name: inherit_keys
INSERT INTO fairlane.idempotency_keys (idempotency_key, task_id, fingerprint, expires_at)
SELECT idempotency_key, task_id, fingerprint, fairlane.now_us() + $4
FROM unnest($1::text[], $2::text::uuid[], $3::bytea[])
    AS asked (idempotency_key, task_id, fingerprint)
ON CONFLICT (idempotency_key) DO UPDATE
SET task_id = excluded.task_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at;

-- name: drop_keys
DELETE FROM fairlane.idempotency_keys WHERE idempotency_key = ANY ($1::text[]);

-- name: unique_holders
SELECT held.key, task.task_id::text, task.state, task.created_at, fairlane.now_us()
FROM fairlane.uniques AS held
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.standing WHERE standing.task_id = held.task_id OFFSET 0
) AS task
WHERE held.key = ANY ($1::bytea[]);

-- name: take_uniques
INSERT INTO fairlane.uniques (key, task_id)
SELECT key, task_id FROM unnest($1::bytea[], $2::text::uuid[]) AS asked (key, task_id)
ON CONFLICT DO NOTHING
RETURNING key;

-- name: lock_uniques
SELECT key FROM fairlane.uniques WHERE key = ANY ($1::bytea[]) ORDER BY key FOR UPDATE;

-- The row may be missing: a task that was replaced has freed its key.

-- name: inherit_uniques
INSERT INTO fairlane.uniques (key, task_id)
SELECT key, task_id FROM unnest($1::bytea[], $2::text::uuid[]) AS asked (key, task_id)
ON CONFLICT (key) DO UPDATE SET task_id = excluded.task_id;

-- name: drop_uniques
DELETE FROM fairlane.uniques WHERE key = ANY ($1::bytea[]);
