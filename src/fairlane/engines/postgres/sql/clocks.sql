-- $1: how far ahead of now, in microseconds, a time must lie to be corrected.

-- name: workers
UPDATE fairlane.workers SET seen_at = fairlane.now_us()
WHERE seen_at > fairlane.now_us() + $1::bigint;

-- name: buckets
UPDATE fairlane.buckets SET at = fairlane.now_us() WHERE at > fairlane.now_us() + $1::bigint;

-- Claims of one worker keep their distance: a repeated request finds its tasks by the time of the
-- claim.

-- name: claims
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
claimants AS (
    UPDATE fairlane.workers AS worker SET claimed_at = clock.now
    FROM clock, fairlane.workers AS before
    WHERE before.worker_id = worker.worker_id AND worker.claimed_at > clock.now + $1::bigint
    RETURNING worker.worker_id, before.claimed_at - clock.now AS ahead
)
UPDATE fairlane.held SET claimed_at = held.claimed_at - claimants.ahead
FROM clock, claimants
WHERE held.worker_id = claimants.worker_id AND held.claimed_at > clock.now + $1::bigint;

-- name: runs
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now)
UPDATE fairlane.held
SET deadline = deadline - (started_at - clock.now), started_at = clock.now
FROM clock
WHERE started_at > clock.now + $1::bigint;

-- name: queued
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
late AS (
    SELECT ready.ctid AS tid
    FROM fairlane.streams CROSS JOIN LATERAL (
        SELECT ready.ctid FROM fairlane.ready
        WHERE
            ready.lane = streams.lane AND ready.level = streams.level
            AND ready.ready_at > (SELECT now FROM clock) + $1::bigint
        LIMIT $2
    ) AS ready
    LIMIT $2
),
changed AS (
    UPDATE fairlane.ready SET ready_at = (SELECT now FROM clock)
    WHERE ctid = ANY (ARRAY(
        SELECT task.ctid FROM fairlane.ready AS task JOIN late ON task.ctid = late.tid
        FOR UPDATE OF task SKIP LOCKED
    ))
    RETURNING task_id
),
noted AS (
    UPDATE fairlane.content SET ready_at = (SELECT now FROM clock)
    WHERE task_id = ANY (ARRAY(SELECT task_id FROM changed))
)
SELECT count(*) FROM changed;

-- name: waiting
SELECT
    (SELECT fairlane.now_us()), waiting.task_id, waiting.attempt, content.spec, waiting.due_at, waiting.updated_at,
    waiting.ready_at, content.run_at
FROM fairlane.waiting
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = waiting.task_id OFFSET 0
) AS content
WHERE (waiting.due_at, waiting.task_id) > ($1::bigint, $2::uuid)
ORDER BY waiting.due_at, waiting.task_id
LIMIT $3;

-- name: redate
WITH sent AS (
    SELECT *
    FROM unnest(
        $1::text::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]
    ) AS sent (task_id, before, due_at, updated_at, ready_at, run_at)
),
changed AS (
    UPDATE fairlane.waiting AS task
    SET due_at = sent.due_at, updated_at = sent.updated_at, ready_at = sent.ready_at
    FROM sent
    WHERE
        task.task_id = ANY ($1::text::uuid[])
        AND task.task_id = sent.task_id AND task.updated_at = sent.before
    RETURNING task.task_id
)
UPDATE fairlane.content AS task SET ready_at = sent.ready_at, run_at = sent.run_at
FROM sent
WHERE task.task_id = ANY (ARRAY(SELECT task_id FROM changed)) AND task.task_id = sent.task_id;
