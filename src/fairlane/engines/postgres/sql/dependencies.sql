-- Keep parents in the store until their children are stored: from then on a deletion can see that
-- children depend on them. Only deletions wait for this lock.

-- name: lock_parents
SELECT FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]) ORDER BY task_id FOR KEY SHARE;

-- The states of parents. `unfinished`: the parent is live again after an end, and not all
-- dependents of that end are released.

-- name: parents
SELECT
    task_id::text, state,
    state IN (SCHEDULED, QUEUED, EXECUTING, RETRYING)
        AND EXISTS (SELECT FROM fairlane.ended_parents WHERE parent = task_id OFFSET 0)
        AS unfinished
FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);

-- name: add_dependents
INSERT INTO fairlane.dependents (parent, child)
SELECT parent, child FROM unnest($1::text::uuid[], $2::text::uuid[]) AS pair (parent, child)
ON CONFLICT DO NOTHING;

-- name: add_bonds
INSERT INTO fairlane.bonds (parent, child, tolerant, fresh)
SELECT parent, child, tolerant, fresh
FROM unnest($1::text::uuid[], $2::text::uuid[], $3::boolean[], $4::boolean[])
    AS bond (parent, child, tolerant, fresh);
