-- name: lanes_of
SELECT task_id::text, lane FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]);

-- name: circuits
SELECT fairlane.now_us(), type, breaker, circuit FROM fairlane.types
WHERE type = ANY ($1::text[]) AND breaker IS NOT NULL;

-- name: lock
SELECT FROM fairlane.types WHERE type = ANY ($1::text[]) ORDER BY type FOR UPDATE;

-- name: change
UPDATE fairlane.types SET circuit = changed.circuit
FROM unnest($1::text[], $2::text[]) AS changed (type, circuit)
WHERE types.type = changed.type;
