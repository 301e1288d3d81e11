-- name: schedules
SELECT schedule_id, definition, next_at, last_at, created_at, updated_at, version
FROM fairlane.schedules;

-- name: lock
LOCK TABLE fairlane.schedules IN SHARE ROW EXCLUSIVE MODE;

-- name: count_others
SELECT count(*) FROM fairlane.schedules WHERE schedule_id <> $1;

-- name: put
INSERT INTO fairlane.schedules AS schedule (
    schedule_id, definition, next_at, created_at, updated_at
)
VALUES ($1, $2, $3, fairlane.now_us(), fairlane.now_us())
ON CONFLICT (schedule_id) DO UPDATE
SET definition = excluded.definition,
    next_at = excluded.next_at,
    updated_at = excluded.updated_at,
    version = schedule.version + 1
RETURNING schedule_id, definition, next_at, last_at, created_at, updated_at, version;

-- name: drop
DELETE FROM fairlane.schedules WHERE schedule_id = $1 RETURNING true;

-- name: fire
UPDATE fairlane.schedules SET last_at = next_at, next_at = $3
WHERE schedule_id = $1 AND next_at = $2
RETURNING true;
