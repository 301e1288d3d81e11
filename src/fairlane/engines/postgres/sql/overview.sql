-- The ends of streams that are not empty.

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

-- Of samples those on both sides of each time.

-- name: samples_about
SELECT fairlane.now_us(), sample.sample
FROM (SELECT) AS once
LEFT JOIN (
    SELECT near.sample
    FROM unnest($1::bigint[]) AS age
    CROSS JOIN LATERAL (
        (
            SELECT at, sample FROM fairlane.samples
            WHERE at <= fairlane.now_us() - age
            ORDER BY at DESC
            LIMIT 1
        )
        UNION ALL
        (
            SELECT at, sample FROM fairlane.samples
            WHERE at > fairlane.now_us() - age
            ORDER BY at
            LIMIT 1
        )
    ) AS near
) AS sample ON true;

-- name: samples
SELECT sample FROM fairlane.samples WHERE at >= $1 ORDER BY at LIMIT $2;

-- Whether it is time for a sample, and ours to take: until the end of the transaction.

-- name: time_for_a_sample
SELECT
    fairlane.now_us(),
    pg_try_advisory_xact_lock($1)
        AND NOT EXISTS (SELECT FROM fairlane.samples WHERE at > fairlane.now_us() - $2::bigint);

-- name: add_sample
INSERT INTO fairlane.samples (at, sample) VALUES ($1, $2);

-- A term more than twice as long as this one is of a clock that has gone back since.

-- name: elect
INSERT INTO fairlane.roles AS role (role, candidate, expires_at)
VALUES ($1, $2, fairlane.now_us() + $3)
ON CONFLICT (role) DO UPDATE
SET candidate = excluded.candidate, expires_at = excluded.expires_at
WHERE
    role.candidate = excluded.candidate
    OR role.expires_at <= fairlane.now_us()
    OR role.expires_at > fairlane.now_us() + 2 * $3
RETURNING true;
