-- name: chores
SELECT
    (SELECT min(due_at) FROM fairlane.waiting) <= fairlane.now_us(),
    least(
        (SELECT min(expires_at) FROM fairlane.ready WHERE expires_at IS NOT NULL),
        (SELECT min(expires_at) FROM fairlane.waiting WHERE expires_at IS NOT NULL)
    ) <= fairlane.now_us(),
    EXISTS (SELECT FROM fairlane.bonds WHERE fresh) OR EXISTS (SELECT FROM fairlane.ended_parents);

-- name: next_due_in
SELECT min(due_at) - fairlane.now_us() FROM fairlane.waiting WHERE due_at > fairlane.now_us();

-- name: more_due
SELECT EXISTS (
    SELECT FROM fairlane.waiting WHERE due_at <= fairlane.now_us() ORDER BY due_at OFFSET $1 LIMIT 1
);

-- $1 how many tasks at most, $2 the verb of the move.

-- name: release_due
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
due AS (
    DELETE FROM fairlane.waiting WHERE ctid = ANY (ARRAY(
        /* BEGIN pick */
        SELECT ctid FROM fairlane.waiting
        WHERE due_at <= (SELECT now FROM clock)
        ORDER BY due_at
        LIMIT $1
        FOR UPDATE SKIP LOCKED
        /* END pick */
    ))
    RETURNING *
),
queued AS (
    INSERT INTO fairlane.ready (
        task_id, ready_at, expires_at, updated_at, lane, attempt, version, level, retry_count,
        linked
    )
    SELECT
        task_id, ready_at, expires_at, now, lane, attempt, version + 1, level, retry_count, linked
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

-- When more tasks are due than fit a batch, a claim picks those that come first among the tasks that
-- it may take. $3 how many of each arm at most, $4 how many of limited types together, $5 ... $9 lane,
-- level, ages and effective level of each arm, $10 the lanes of limited types, $11 the numbers of these
-- types, $12 how many tasks the claim may take of them. An arm of the claim reads `ready_at`; here
-- `due_at` stands for it.

-- name: first_due
WITH clock AS (SELECT fairlane.now_us() AS now)
/* BEGIN pick */
SELECT task.ctid
FROM (
    WITH candidate AS MATERIALIZED (
        SELECT head.tid, arm.effective, head.due_at, head.task_id, quota.type, quota.most
        FROM unnest($5::int[], $6::smallint[], $7::bigint[], $8::bigint[], $9::smallint[])
            AS arm (lane, level, from_age, to_age, effective)
        LEFT JOIN unnest($10::int[], $11::int[], $12::int[]) AS quota (lane, type, most)
            ON quota.lane = arm.lane
        CROSS JOIN LATERAL (
            SELECT ctid AS tid, due_at, task_id FROM fairlane.waiting
            WHERE
                lane = arm.lane AND level = arm.level
                AND due_at <= least((SELECT now FROM clock), (SELECT now FROM clock) - arm.from_age)
                AND due_at > (SELECT now FROM clock) - arm.to_age
            ORDER BY due_at, task_id
            LIMIT $3
        ) AS head
    ),
    counted AS (
        SELECT
            *,
            row_number() OVER (PARTITION BY type ORDER BY effective DESC, due_at, task_id) AS nth
        FROM candidate
        WHERE type IS NOT NULL
    ),
    limited AS (
        SELECT tid, effective, due_at, task_id FROM counted
        WHERE nth <= most
        ORDER BY effective DESC, due_at, task_id
        LIMIT $4
    )
    SELECT tid
    FROM (
        SELECT tid, effective, due_at, task_id FROM candidate WHERE type IS NULL
        UNION ALL
        TABLE limited
    ) AS allowed
    ORDER BY effective DESC, due_at, task_id
    LIMIT $1
) AS first JOIN fairlane.waiting AS task ON task.ctid = first.tid
FOR UPDATE OF task SKIP LOCKED
/* END pick */;

-- $1: how many tasks at most; of the move: $2 error, $3 label, $4 verb, $5 state.

-- name: expire
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
unqueued AS (
    DELETE FROM fairlane.ready WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM fairlane.ready
        WHERE expires_at <= (SELECT now FROM clock)
        ORDER BY expires_at
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING task_id, lane, level, attempt, version, retry_count, linked
),
unscheduled AS (
    DELETE FROM fairlane.waiting WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM fairlane.waiting
        WHERE expires_at <= (SELECT now FROM clock)
        ORDER BY expires_at
        LIMIT $1 - (SELECT count(*) FROM unqueued)
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING
        task_id, lane, level, attempt, version, retry_count, linked, state, due_at IS NULL AS bound
),
expired AS (
    SELECT *, QUEUED::smallint AS state, false AS bound FROM unqueued
    UNION ALL
    SELECT * FROM unscheduled
),
ended AS (
    INSERT INTO fairlane.outcome (
        task_id, completed_at, lane, attempt, version, level, state, retry_count, error
    )
    SELECT task_id, now, lane, attempt, version + 1, level, $5::smallint, retry_count, $2::bytea
    FROM clock, expired
),
moved AS (
    SELECT
        $4::text AS verb, NULL::text AS worker_id, lane, level, task_id, attempt, state AS source,
        $5::smallint AS target, $3::text AS label, UNTIMED AS bucket, NULL::float8 AS seconds
    FROM expired
)
/* TEMPLATE: accounting */
SELECT task_id::text, linked, bound FROM expired;
