-- Lock rows in the same order as other operations: outcome, then content. What is read after that
-- cannot change before the transaction ends.

-- name: lock_outcomes
SELECT FROM fairlane.outcome WHERE task_id = ANY ($1::text::uuid[]) ORDER BY task_id FOR UPDATE;

-- name: lock_contents
SELECT FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]) ORDER BY task_id FOR UPDATE;

-- Tasks whose retention is over ($1 states, $2 times), after those that were looked at before ($3 and
-- $4: when the last one ended, and its id). Locked rows are left out.

-- name: over
SELECT outcome.state, outcome.completed_at, outcome.task_id::text
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::text::uuid[])
    AS kept (state, deadline, seen_at, seen)
CROSS JOIN LATERAL (
    SELECT outcome.task_id, outcome.state, outcome.completed_at FROM fairlane.outcome
    WHERE
        outcome.state = kept.state
        AND outcome.completed_at BETWEEN kept.seen_at AND kept.deadline
        AND (outcome.completed_at > kept.seen_at OR outcome.task_id > kept.seen)
    ORDER BY outcome.completed_at, outcome.task_id
    LIMIT $5
    FOR UPDATE SKIP LOCKED
) AS outcome
CROSS JOIN LATERAL (
    SELECT FROM fairlane.content WHERE content.task_id = outcome.task_id FOR UPDATE SKIP LOCKED
) AS task
LIMIT $5;

-- Tasks with dependents: whether one of those that are looked at ($2: how many) has not ended, and
-- whether there are more. The tasks are locked, so no dependent is added meanwhile.

-- name: dependents
SELECT
    old.parent::text,
    EXISTS (
        SELECT FROM (
            SELECT child FROM fairlane.dependents WHERE dependents.parent = old.parent
            ORDER BY child
            LIMIT $2
        ) AS each
        WHERE
            EXISTS (SELECT FROM fairlane.content WHERE content.task_id = each.child OFFSET 0)
            AND NOT EXISTS (SELECT FROM fairlane.outcome WHERE outcome.task_id = each.child OFFSET 0)
    ),
    EXISTS (SELECT FROM fairlane.dependents WHERE dependents.parent = old.parent OFFSET $2)
FROM unnest($1::text::uuid[]) AS old (parent)
WHERE EXISTS (SELECT FROM fairlane.dependents WHERE dependents.parent = old.parent OFFSET 0);

-- name: forget_dependents
DELETE FROM fairlane.dependents
WHERE parent = $1::text::uuid AND child = ANY (ARRAY(
    SELECT child FROM fairlane.dependents WHERE parent = $1::text::uuid ORDER BY child LIMIT $2
));

-- Delete tasks that have ended. Their states are noted if children still depend on them.

-- name: delete
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
gone AS (
    DELETE FROM fairlane.outcome WHERE task_id = ANY ($1::text::uuid[])
    RETURNING task_id, lane, level, attempt, state, completed_at
),
-- Twin of core/fences.py, leaves_fence(). $3 is for how long.
fences AS (
    INSERT INTO fairlane.documents (kind, id, value, at, expires_at, version)
    SELECT
        'fence', task_id::text, convert_to(attempt::text, 'UTF8'), now, now + $3::bigint, 1
    FROM clock, gone
    WHERE
        attempt > 0
        AND completed_at > now - $3::bigint
        AND ($2::boolean OR state <> COMPLETED)
    ON CONFLICT (kind, id) DO UPDATE
    SET value = excluded.value, expires_at = excluded.expires_at, version = documents.version + 1
),
content AS (
    DELETE FROM fairlane.content WHERE task_id = ANY (ARRAY(SELECT task_id FROM gone))
    RETURNING task_id, unique_key
),
dependents AS (
    DELETE FROM fairlane.dependents WHERE parent = ANY (ARRAY(SELECT task_id FROM gone))
),
runs AS (DELETE FROM fairlane.attempts WHERE task_id = ANY (ARRAY(SELECT task_id FROM gone))),
-- A key that another transaction is taking over is left to it.
keys AS (
    DELETE FROM fairlane.uniques WHERE key = ANY (ARRAY(
        SELECT held.key FROM content
        CROSS JOIN LATERAL (
            SELECT uniques.key FROM fairlane.uniques
            WHERE uniques.key = content.unique_key AND uniques.task_id = content.task_id
            FOR UPDATE SKIP LOCKED
        ) AS held
    ))
),
noted AS (
    INSERT INTO fairlane.ended_parents (parent, state)
    SELECT task_id, state FROM gone
    WHERE EXISTS (SELECT FROM fairlane.bonds WHERE bonds.parent = gone.task_id OFFSET 0)
    ON CONFLICT DO NOTHING
),
counted AS (
    INSERT INTO fairlane.tally_deltas (lane, level, source, target, label, bucket, times, seconds)
    SELECT lane, level, state, NOWHERE, '', UNTIMED, count(*), 0 FROM gone
    GROUP BY lane, level, state
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, lane, level, task_ids, attempts)
    SELECT
        (SELECT now FROM clock), 'delete', lane, level, array_agg(task_id), array_agg(attempt)
    FROM gone
    WHERE $2::boolean
    GROUP BY lane, level
)
SELECT task_id::text FROM gone;

-- name: old_keys
WITH gone AS (
    DELETE FROM fairlane.idempotency_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM fairlane.idempotency_keys
        WHERE expires_at <= $1
        ORDER BY expires_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING true
)
SELECT count(*) FROM gone;

-- name: old_workers
WITH gone AS (
    DELETE FROM fairlane.workers
    WHERE
        worker_id = ANY (ARRAY(
            SELECT worker_id FROM fairlane.workers
            WHERE status = 'dead' AND seen_at <= $1
            LIMIT $2
            FOR UPDATE SKIP LOCKED
        ))
        AND worker_id NOT IN (SELECT held.worker_id FROM fairlane.held)
    RETURNING true
)
SELECT count(*) FROM gone;

-- name: now
SELECT fairlane.now_us();
