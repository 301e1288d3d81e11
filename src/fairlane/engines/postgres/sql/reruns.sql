-- The states and versions of tasks, and whether dependents of their last end are not released yet.

-- name: stand
SELECT
    task_id::text, state, version,
    EXISTS (SELECT FROM fairlane.ended_parents WHERE parent = task_id OFFSET 0) AS noted
FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);
