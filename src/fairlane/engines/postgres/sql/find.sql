-- find.py builds both statements from these examples: only with the conditions that a filter has,
-- and from the tables that can have its tasks, one after the other. Every table is read by task id
-- from the newest down, and only a bounded stretch of it.

-- The last task of the stretch: the one after a given number of others.

-- name: end_of_stretch
(
    SELECT place.task_id::text FROM fairlane./* BEGIN table */ content /* END table */ AS place
    WHERE /* BEGIN conditions */ true /* END conditions */
    ORDER BY place.task_id DESC
    OFFSET /* BEGIN skipped */ 0 /* END skipped */ LIMIT 1
);

-- A lane has a bit by its number; lanes newer than these bits have none. (An array would be
-- searched for each task.) `needles` are bytes that a stored spec must contain to be admitted: most
-- others need not be sent.

-- name: find
SELECT task_id::text, spec FROM (
    /* BEGIN matches */
    (
        SELECT place.task_id, /* BEGIN spec */ task.spec /* END spec */ AS spec
        FROM fairlane./* BEGIN table */ outcome /* END table */ AS place
        /* BEGIN joins */
        /* BEGIN content */
        CROSS JOIN LATERAL (
            SELECT created_at, spec FROM fairlane.content
            WHERE content.task_id = place.task_id
            OFFSET 0
        ) AS task
        /* END content */
        /* BEGIN queued */
        CROSS JOIN LATERAL (
            SELECT FROM fairlane.ready
            WHERE
                ready.lane = place.lane AND ready.level = place.level
                AND ready.ready_at = place.ready_at AND ready.task_id = place.task_id
            OFFSET 0
        ) AS queued
        /* END queued */
        /* END joins */
        WHERE
            /* BEGIN conditions */
            /* BEGIN below */ place.task_id < $1::text::uuid /* END below */
            AND /* BEGIN down_to */ place.task_id >= $2::text::uuid /* END down_to */
            AND
            /* BEGIN lane */
            CASE WHEN place.lane < $3::int THEN get_bit($4::bytea, place.lane) = 1 ELSE false END
            /* END lane */
            AND /* BEGIN level */ place.level = ANY ($5::smallint[]) /* END level */
            AND /* BEGIN state */ place.state = ANY ($6::smallint[]) /* END state */
            AND /* BEGIN worker */ place.worker_id = $7 /* END worker */
            AND /* BEGIN ended */ place.completed_at < $8::bigint /* END ended */
            AND /* BEGIN since */ task.created_at >= $9::bigint /* END since */
            AND /* BEGIN until */ task.created_at < $10::bigint /* END until */
            AND
            /* BEGIN needles */
            NOT EXISTS (
                SELECT FROM unnest($11::bytea[]) AS part
                WHERE task.spec IS NULL OR position(part.part IN task.spec) = 0
            )
            /* END needles */
            /* END conditions */
        ORDER BY place.task_id DESC
    )
    /* END matches */
) AS match ORDER BY task_id DESC LIMIT /* BEGIN most */ $12 /* END most */;
