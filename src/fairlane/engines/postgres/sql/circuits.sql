-- name: types_of
SELECT held.task_id::text, types.type, types.circuit
FROM fairlane.held
JOIN fairlane.lanes ON lanes.id = held.lane
JOIN fairlane.types ON types.type = lanes.type
WHERE held.task_id = ANY ($1::text::uuid[]) AND types.breaker IS NOT NULL;

-- name: circuits
SELECT fairlane.now_us(), type, breaker, circuit FROM fairlane.types
WHERE type = ANY ($1::text[]) AND breaker IS NOT NULL;

-- name: lock
SELECT FROM fairlane.types WHERE type = ANY ($1::text[]) ORDER BY type FOR UPDATE;

-- name: change
UPDATE fairlane.types SET circuit = changed.circuit
FROM unnest($1::text[], $2::text[]) AS changed (type, circuit)
WHERE types.type = changed.type;
