-- Parts of statements that find.py puts together: only what a filter asks for, and only from tables
-- that can have it. Every table is read by task id from the newest down, a bounded stretch of it.

-- The last task of the stretch: what comes after so many others.

-- name: end_of_stretch
(
    SELECT place.task_id::text FROM fairlane.{table} AS place
    WHERE {range}
    ORDER BY place.task_id DESC
    OFFSET {skipped} LIMIT 1
)

-- name: matches
(
    SELECT place.task_id, {spec} AS spec
    FROM fairlane.{table} AS place {joined}
    WHERE {conditions}
    ORDER BY place.task_id DESC
)

-- name: found
SELECT task_id::text, spec FROM ({matches}) AS match ORDER BY task_id DESC LIMIT {most}

-- name: with_content
CROSS JOIN LATERAL (
    SELECT created_at, spec FROM fairlane.content WHERE content.task_id = place.task_id OFFSET 0
) AS task

-- name: if_queued
CROSS JOIN LATERAL (
    SELECT FROM fairlane.ready
    WHERE
        ready.lane = place.lane AND ready.level = place.level
        AND ready.ready_at = place.ready_at AND ready.task_id = place.task_id
    OFFSET 0
) AS queued

-- name: below
place.task_id < {cursor}::text::uuid

-- name: down_to
place.task_id >= {floor}::text::uuid

-- Bits by the number of a lane; newer lanes have none. (An array would be searched for each task.)

-- name: lane
CASE WHEN place.lane < {lanes}::int THEN get_bit({bits}::bytea, place.lane) = 1 ELSE false END

-- name: level
place.level = ANY ({levels}::smallint[])

-- name: state
place.state = ANY ({states}::smallint[])

-- name: worker
place.worker_id = {worker}

-- name: ended
place.completed_at < {ended}::bigint

-- name: since
{task}.created_at >= {since}::bigint

-- name: until
{task}.created_at < {until}::bigint

-- What a spec must contain to be admitted: most others need not be sent.

-- name: spec
NOT EXISTS (
    SELECT FROM unnest({needles}::bytea[]) AS part
    WHERE {task}.spec IS NULL OR position(part.part IN {task}.spec) = 0
)
