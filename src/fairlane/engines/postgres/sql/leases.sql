-- `= ANY`, besides the join, finds rows through the index whatever the statistics say.

-- name: start
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
started AS (
    UPDATE fairlane.held AS task
    SET started_at = now - (sent.seconds * 1000000)::bigint,
        deadline = now - (sent.seconds * 1000000)::bigint + (
            SELECT (content.timeout * 1000000)::bigint FROM fairlane.content
            WHERE content.task_id = task.task_id
        )
    FROM clock, unnest($2::text::uuid[], $3::text::int[], $4::text::float8[]) WITH ORDINALITY
        AS sent (task_id, attempt, seconds, number)
    WHERE
        task.task_id = ANY ($2::text::uuid[])
        AND task.task_id = sent.task_id AND task.attempt = sent.attempt AND task.worker_id = $1
    RETURNING sent.number, task.task_id, task.attempt, task.lane, task.level
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, worker_id, lane, level, task_ids, attempts)
    SELECT
        (SELECT now FROM clock), 'start', $1, lane, level, array_agg(task_id), array_agg(attempt)
    FROM started
    GROUP BY lane, level
)
SELECT number FROM started;

-- name: progress
WITH clock AS MATERIALIZED (SELECT fairlane.now_us() AS now),
reported AS (
    UPDATE fairlane.held AS task
    SET progress = sent.progress,
        progress_at = now,
        updated_at = now,
        started_at = coalesce(task.started_at, now),
        deadline = CASE
            WHEN task.started_at IS NOT NULL THEN task.deadline
            ELSE now + (
                SELECT (content.timeout * 1000000)::bigint FROM fairlane.content
                WHERE content.task_id = task.task_id
            )
        END
    FROM clock, unnest($2::text::uuid[], $3::text::int[], $4::bytea[]) WITH ORDINALITY
        AS sent (task_id, attempt, progress, number)
    WHERE
        task.task_id = ANY ($2::text::uuid[])
        AND task.task_id = sent.task_id AND task.attempt = sent.attempt AND task.worker_id = $1
    RETURNING sent.number, task.task_id, task.attempt, task.lane, task.level
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, worker_id, lane, level, task_ids, attempts)
    SELECT
        (SELECT now FROM clock), 'progress', $1, lane, level, array_agg(task_id),
        array_agg(attempt)
    FROM reported
    GROUP BY lane, level
)
SELECT number FROM reported;

-- name: existing
SELECT task_id FROM fairlane.content WHERE task_id = ANY ($1::text::uuid[]);

-- name: worker
SELECT status, lease FROM fairlane.workers WHERE worker_id = $1;

-- $4 is the new status, written only if the status is still $3. A sign of life alone does not wait
-- for the disk: if a crash of the server forgets it, the next one takes its place.

-- name: beat
WITH beaten AS (
    UPDATE fairlane.workers
    SET seen_at = fairlane.now_us(),
        load = coalesce($2, load),
        status = $4,
        health = coalesce($5, health)
    WHERE
        worker_id = $1 AND status = $3
        AND ($4 <> $3 OR (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL)
    RETURNING true AS yes
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, worker_id)
    SELECT fairlane.now_us(), 'worker_' || $4::text, $1 FROM beaten WHERE $4::text <> $3::text
)
SELECT (SELECT yes FROM beaten), slot.task_id, slot.attempt
FROM (SELECT) AS once
LEFT JOIN (
    SELECT task_id, attempt FROM fairlane.lingering WHERE worker_id = $1 ORDER BY task_id LIMIT $6
) AS slot ON true;

-- name: lost
SELECT
    held.task_id, held.attempt, held.worker_id,
    (SELECT type FROM fairlane.lanes WHERE lanes.id = held.lane),
    'lost', held.started_at IS NOT NULL,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM fairlane.workers AS worker
JOIN fairlane.held ON held.worker_id = worker.worker_id
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = held.task_id OFFSET 0
) AS task
WHERE worker.status = 'dead'
LIMIT $1;

-- name: timed_out
SELECT
    held.task_id, held.attempt, held.worker_id,
    (SELECT type FROM fairlane.lanes WHERE lanes.id = held.lane),
    'timeout', true,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM fairlane.held
JOIN fairlane.workers AS worker ON worker.worker_id = held.worker_id
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = held.task_id OFFSET 0
) AS task
WHERE
    held.deadline <= fairlane.now_us()
    AND held.deadline - held.started_at <= fairlane.now_us() - $2::bigint
    AND worker.status <> 'dead'
ORDER BY held.deadline
LIMIT $1;

-- name: unstarted
SELECT
    held.task_id, held.attempt, held.worker_id,
    (SELECT type FROM fairlane.lanes WHERE lanes.id = held.lane),
    'unstarted', false,
    held.retry_count, task.max_retries, task.returns, task.timeout, task.spec
FROM fairlane.workers AS worker
JOIN fairlane.held ON held.worker_id = worker.worker_id
CROSS JOIN LATERAL (
    SELECT * FROM fairlane.content WHERE content.task_id = held.task_id OFFSET 0
) AS task
WHERE
    worker.start_within IS NOT NULL
    AND worker.status <> 'dead'
    AND held.started_at IS NULL
    AND greatest(held.claimed_at, $2::bigint) + worker.start_within <= fairlane.now_us()
ORDER BY held.claimed_at
LIMIT $1;

-- Returns no row for a worker that is dead. xmax = 0: the row was inserted, not updated.

-- name: register
WITH joined AS (
    INSERT INTO fairlane.workers AS worker (
        worker_id, status, capacity, capabilities, queues, types, host, version, lease,
        start_within, load, registered_at, seen_at
    )
    VALUES (
        $1, 'active', $2, $3, $4, $5, $6, $7, $8, $9, $10, fairlane.now_us(), fairlane.now_us()
    )
    ON CONFLICT (worker_id) DO UPDATE SET
        capacity = excluded.capacity,
        capabilities = excluded.capabilities,
        queues = excluded.queues,
        types = excluded.types,
        host = excluded.host,
        version = excluded.version,
        lease = excluded.lease,
        start_within = excluded.start_within,
        seen_at = excluded.seen_at
    WHERE worker.status <> 'dead'
    RETURNING worker_id, xmax = 0 AS fresh
),
entry AS (
    INSERT INTO fairlane.journal (at, verb, worker_id)
    SELECT fairlane.now_us(), 'worker_joined', worker_id FROM joined WHERE fresh
)
SELECT fresh FROM joined;

-- name: mark
UPDATE fairlane.workers SET status = $2 WHERE worker_id = $1 AND status <> 'dead'
RETURNING worker_id;

-- End the sessions of these workers, if their leases have run out. A role may end the sessions of
-- its own, and a superuser all of them: others are left out, because one alone would be an error.

-- name: end_sessions
SELECT pg_terminate_backend(session.pid)
FROM fairlane.workers AS worker
CROSS JOIN LATERAL (
    SELECT activity.pid
    FROM pg_stat_activity AS activity
    JOIN pg_roles AS role ON role.oid = activity.usesysid
    WHERE
        activity.application_name = left($2 || worker.worker_id, 63)
        AND activity.datname = current_database()
        AND activity.pid <> pg_backend_pid()
        AND pg_has_role(activity.usesysid, 'MEMBER')
        AND (NOT role.rolsuper OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))
) AS session
WHERE
    worker.worker_id = ANY ($1::text[])
    AND worker.status <> 'dead'
    AND worker.seen_at + worker.lease <= fairlane.now_us();

-- name: bury
UPDATE fairlane.workers SET status = 'dead'
WHERE
    worker_id = ANY ($1::text[])
    AND status <> 'dead'
    AND seen_at + lease <= fairlane.now_us()
RETURNING worker_id;

-- Lock a worker's row, so that the worker cannot claim before the transaction ends.

-- name: lock_worker
SELECT worker_id FROM fairlane.workers WHERE worker_id = $1 FOR UPDATE;

-- name: declare_dead
UPDATE fairlane.workers SET status = 'dead'
WHERE worker_id = $1 AND EXISTS (SELECT FROM fairlane.held WHERE held.worker_id = $1)
RETURNING worker_id;

-- name: remove
DELETE FROM fairlane.workers WHERE worker_id = $1;

-- name: drop_lingering
DELETE FROM fairlane.lingering WHERE worker_id = ANY ($1::text[]);
