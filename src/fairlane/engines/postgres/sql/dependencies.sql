-- Parents stay in the store until the children are there, whose bonds then tell that someone asks
-- how they ended. Nobody but a deletion waits for this lock.

-- name: lock_parents
SELECT FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]) ORDER BY task_id FOR KEY SHARE;

-- How parents stand; and whether such a one has ended before, and that is not yet seen to.

-- name: parents
SELECT
    task_id::text, state,
    state IN (SCHEDULED, QUEUED, EXECUTING, RETRYING)
        AND EXISTS (SELECT FROM fairlane.ended_parents WHERE parent = task_id OFFSET 0)
        AS unfinished
FROM fairlane.standing
WHERE task_id = ANY ($1::text::uuid[]);

-- name: bind
INSERT INTO fairlane.bonds (parent, child, tolerant, fresh)
SELECT parent, child, tolerant, fresh
FROM unnest($1::text::uuid[], $2::text::uuid[], $3::boolean[], $4::boolean[])
    AS bond (parent, child, tolerant, fresh);
