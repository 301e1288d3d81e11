-- name: any_noted
SELECT EXISTS (
    SELECT 1 FROM ended_parents WHERE parent IN (SELECT value FROM json_each(?))
);

-- name: wait_for_parents
UPDATE waiting SET due_at = NULL WHERE number = ?;
