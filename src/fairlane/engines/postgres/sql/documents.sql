-- name: now
SELECT fairlane.now_us();

-- name: read
SELECT fairlane.now_us(), id, value, at, expires_at, alias, version FROM fairlane.documents
WHERE kind = $1 AND id = ANY ($2::text[]);

-- name: exists
SELECT EXISTS (SELECT FROM fairlane.documents WHERE kind = $1 AND id = $2);

-- name: find
SELECT fairlane.now_us(), id, value, at, expires_at, alias, version FROM fairlane.documents
WHERE kind = $1 AND alias = $2;

-- name: oldest
SELECT fairlane.now_us(), id, value, at, expires_at, alias, version FROM fairlane.documents
WHERE kind = $1 AND (at, id) > ($2::bigint, $3::text)
ORDER BY at, id
LIMIT $4 OFFSET $5;

-- name: newest
SELECT fairlane.now_us(), id, value, at, expires_at, alias, version FROM fairlane.documents
WHERE kind = $1 AND (at, id) < ($2::bigint, $3::text)
ORDER BY at DESC, id DESC
LIMIT $4 OFFSET $5;

-- name: write
SELECT fairlane.write_documents(
    $1, $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint
);

-- name: add
WITH added AS (
    INSERT INTO fairlane.documents (kind, id, value, at, expires_at, version)
    SELECT $1, id, value, at, expires_at, 1
    FROM unnest($2::text[], $3::bytea[], $4::bigint[], $5::bigint[])
        AS new (id, value, at, expires_at)
    ON CONFLICT (kind, id) DO NOTHING
    RETURNING true
)
SELECT count(*) FROM added;

-- name: expire
WITH gone AS (
    DELETE FROM fairlane.documents WHERE kind = $1 AND id = ANY (ARRAY(
        SELECT id FROM fairlane.documents
        WHERE kind = $1 AND expires_at <= fairlane.now_us()
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING true
)
SELECT count(*) FROM gone;
