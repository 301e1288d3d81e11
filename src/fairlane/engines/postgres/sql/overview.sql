-- The oldest and the newest task of streams that are not empty.

-- name: streams
SELECT stream.lane, stream.level, stream.depth, oldest.ready_at, newest.ready_at
FROM unnest($1::int[], $2::smallint[], $3::bigint[]) AS stream (lane, level, depth)
CROSS JOIN LATERAL (
    SELECT ready_at FROM fairlane.ready
    WHERE ready.lane = stream.lane AND ready.level = stream.level
    ORDER BY ready_at
    LIMIT 1
) AS oldest
CROSS JOIN LATERAL (
    SELECT ready_at FROM fairlane.ready
    WHERE ready.lane = stream.lane AND ready.level = stream.level
    ORDER BY ready_at DESC
    LIMIT 1
) AS newest;

-- name: buckets
SELECT type, tokens, at FROM fairlane.buckets;

-- The samples just before and just after each time.

-- name: samples_about
SELECT fairlane.now_us(), sample.value
FROM (SELECT) AS once
LEFT JOIN (
    SELECT near.value
    FROM unnest($2::bigint[]) AS age
    CROSS JOIN LATERAL (
        (
            SELECT at, value FROM fairlane.documents
            WHERE kind = $1 AND at <= fairlane.now_us() - age
            ORDER BY at DESC
            LIMIT 1
        )
        UNION ALL
        (
            SELECT at, value FROM fairlane.documents
            WHERE kind = $1 AND at > fairlane.now_us() - age
            ORDER BY at
            LIMIT 1
        )
    ) AS near
) AS sample ON true;
