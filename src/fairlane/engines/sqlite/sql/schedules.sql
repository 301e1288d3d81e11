-- name: schedules
SELECT schedule_id, definition, next_at, last_at, created_at, updated_at, version
FROM schedules ORDER BY schedule_id;

-- name: full
SELECT count(*) >= ?2 AND NOT EXISTS (SELECT 1 FROM schedules WHERE schedule_id = ?1)
FROM schedules;

-- name: put
INSERT INTO schedules (schedule_id, definition, next_at, created_at, updated_at, version)
VALUES (?1, ?2, ?3, ?4, ?4, 1)
ON CONFLICT DO UPDATE SET
    definition = excluded.definition,
    next_at = excluded.next_at,
    updated_at = excluded.updated_at,
    version = version + 1
RETURNING schedule_id, definition, next_at, last_at, created_at, updated_at, version;

-- name: drop
DELETE FROM schedules WHERE schedule_id = ?;

-- name: fire
UPDATE schedules SET next_at = ?1, last_at = ?2 WHERE schedule_id = ?3 AND next_at = ?2;
