-- What the end of a task takes besides moving its row, if the task is linked (others may depend on
-- it, or it may hold a unique key) or bound (it waits for its parents). All of it happens in the
-- transaction that ends the task. A row of `bonds` is a dependency of a child on a parent.
--
-- Rows are found through indexes whatever the statistics say: by `= ANY` of an array, or one at a
-- time (LATERAL, with OFFSET 0 or a lock so that the planner cannot turn it into a join). These
-- tables are empty one moment and full the next, and plans are kept.

-- name: leave_parents
DELETE FROM fairlane.bonds WHERE child = ANY ($1::text::uuid[]);

-- The keys that tasks may still hold. Keys that another transaction is taking over are left to it:
-- a key whose holder no longer counts is as good as free.

-- name: keys_held
SELECT task.task_id::text, task.unique_key, task.unique_states
FROM fairlane.content AS task
CROSS JOIN LATERAL (
    SELECT FROM fairlane.uniques AS held
    WHERE held.key = task.unique_key AND held.task_id = task.task_id
    FOR UPDATE SKIP LOCKED
) AS held
WHERE task.task_id = ANY ($1::text::uuid[]);

-- name: drop_keys
DELETE FROM fairlane.uniques WHERE key = ANY ($1::bytea[]);

-- Dependencies on parents that have ended ($2: in which state, unless an earlier end is noted). A
-- transaction that has locked a child sees all its dependencies in the next statement, so if two
-- parents end at once, the later one finds the child free. A child that another transaction has
-- locked is left for later.

-- name: bonds
SELECT bond.parent::text, coalesce(noted.state, ended.state), bond.child::text, bond.tolerant
FROM unnest($1::text::uuid[], $2::text::smallint[]) AS ended (parent, state)
LEFT JOIN LATERAL (
    SELECT state FROM fairlane.ended_parents AS noted WHERE noted.parent = ended.parent OFFSET 0
) AS noted ON true
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.bonds WHERE bonds.parent = ended.parent OFFSET 0
) AS bond
CROSS JOIN LATERAL (
    SELECT FROM fairlane.waiting WHERE waiting.task_id = bond.child FOR UPDATE SKIP LOCKED
) AS child
LIMIT $3;

-- name: drop_bonds
WITH met AS MATERIALIZED (
    SELECT bond.tid FROM unnest($1::text::uuid[], $2::text::uuid[]) AS met (parent, child)
    CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM fairlane.bonds
        WHERE bonds.parent = met.parent AND bonds.child = met.child
        OFFSET 0
    ) AS bond
)
DELETE FROM fairlane.bonds USING met WHERE bonds.ctid = met.tid;

-- Children without dependencies become ready, or wait for their time if it is still to come.

-- name: free
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
free AS MATERIALIZED (
    SELECT ctid AS tid, ready_at <= now AS at_once FROM clock, fairlane.waiting AS child
    WHERE
        task_id = ANY ($1::text::uuid[])
        AND NOT EXISTS (SELECT FROM fairlane.bonds WHERE bonds.child = child.task_id OFFSET 0)
),
dated AS (
    UPDATE fairlane.waiting AS child SET due_at = child.ready_at
    FROM free
    WHERE child.ctid = free.tid AND NOT free.at_once
),
due AS (
    DELETE FROM fairlane.waiting AS child USING free
    WHERE child.ctid = free.tid AND free.at_once
    RETURNING child.*
),
revised AS (
    UPDATE fairlane.content SET ready_at = (SELECT now FROM clock)
    WHERE task_id = ANY (ARRAY(SELECT task_id FROM due))
),
queued AS (
    INSERT INTO fairlane.ready (
        task_id, ready_at, expires_at, updated_at, lane, attempt, version, level, retry_count,
        linked
    )
    SELECT task_id, now, expires_at, now, lane, attempt, version + 1, level, retry_count, linked
    FROM clock, due
),
moved AS (
    SELECT
        $2::text AS verb, NULL::text AS worker_id, lane, level, task_id, attempt, state AS source,
        QUEUED AS target, '' AS label, UNTIMED AS bucket, NULL::float8 AS seconds
    FROM due
)
/* TEMPLATE: accounting */
SELECT count(*) FROM due;

-- Note the parents that children still depend on, and remove the notes of the others.

-- name: note_parents
WITH ended AS MATERIALIZED (
    SELECT
        parent, state,
        EXISTS (SELECT FROM fairlane.bonds WHERE bonds.parent = sent.parent OFFSET 0) AS busy
    FROM unnest($1::text::uuid[], $2::text::smallint[]) AS sent (parent, state)
),
done AS (
    DELETE FROM fairlane.ended_parents
    WHERE parent = ANY (ARRAY(SELECT parent FROM ended WHERE NOT busy))
)
INSERT INTO fairlane.ended_parents (parent, state)
SELECT parent, state FROM ended WHERE busy
ON CONFLICT DO NOTHING;

-- name: noted_parents
SELECT parent::text, state FROM fairlane.ended_parents LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: fresh_parents
SELECT parent::text FROM fairlane.bonds WHERE fresh LIMIT $1 FOR UPDATE SKIP LOCKED;

-- Mark parents that have not ended as linked. Their rows are locked: without a lock, a parent whose
-- end is being committed by a transaction that cannot see the dependency yet would look as if it
-- were still to end. Rows that others have locked, or have just changed, are left out.

-- name: link
WITH in_waiting AS MATERIALIZED (
    SELECT ctid AS tid, task_id, linked FROM fairlane.waiting
    WHERE task_id = ANY ($1::text::uuid[])
    FOR UPDATE SKIP LOCKED
),
in_ready AS MATERIALIZED (
    SELECT place.* FROM fairlane.content AS task
    CROSS JOIN LATERAL (
        SELECT ctid AS tid, task_id, linked FROM fairlane.ready
        WHERE
            ready.lane = task.lane AND ready.level = task.level
            AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id
        FOR UPDATE SKIP LOCKED
    ) AS place
    WHERE task.task_id = ANY ($1::text::uuid[])
),
in_held AS MATERIALIZED (
    SELECT ctid AS tid, task_id, linked FROM fairlane.held
    WHERE task_id = ANY ($1::text::uuid[])
    FOR UPDATE SKIP LOCKED
),
marked_waiting AS (
    UPDATE fairlane.waiting AS task SET linked = true FROM in_waiting
    WHERE task.ctid = in_waiting.tid AND NOT in_waiting.linked
    RETURNING task.task_id
),
marked_ready AS (
    UPDATE fairlane.ready AS task SET linked = true FROM in_ready
    WHERE task.ctid = in_ready.tid AND NOT in_ready.linked
    RETURNING task.task_id
),
marked_held AS (
    UPDATE fairlane.held AS task SET linked = true FROM in_held
    WHERE task.ctid = in_held.tid AND NOT in_held.linked
    RETURNING task.task_id
)
SELECT task_id::text FROM in_waiting WHERE linked
UNION ALL SELECT task_id::text FROM in_ready WHERE linked
UNION ALL SELECT task_id::text FROM in_held WHERE linked
UNION ALL SELECT task_id::text FROM marked_waiting
UNION ALL SELECT task_id::text FROM marked_ready
UNION ALL SELECT task_id::text FROM marked_held;

-- name: bonds_are_linked
UPDATE fairlane.bonds SET fresh = false WHERE fresh AND parent = ANY ($1::text::uuid[]);

-- name: ends_of
SELECT sent.parent::text, coalesce(noted.state, outcome.state)
FROM unnest($1::text::uuid[]) AS sent (parent)
LEFT JOIN LATERAL (
    SELECT state FROM fairlane.ended_parents AS noted WHERE noted.parent = sent.parent OFFSET 0
) AS noted ON true
LEFT JOIN LATERAL (
    SELECT state FROM fairlane.outcome WHERE outcome.task_id = sent.parent OFFSET 0
) AS outcome ON true
WHERE coalesce(noted.state, outcome.state) IS NOT NULL;
