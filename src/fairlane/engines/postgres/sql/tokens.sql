-- Expired ones are as good as gone, and are cleared away when another is stored.

-- name: tokens
SELECT token_id, digest, parent_id, created_at, expires_at, terms, fairlane.now_us()
FROM fairlane.tokens WHERE expires_at IS NULL OR expires_at > fairlane.now_us();

-- name: by_digest
SELECT token_id, digest, parent_id, created_at, expires_at, terms, fairlane.now_us()
FROM fairlane.tokens WHERE digest = $1 AND (expires_at IS NULL OR expires_at > fairlane.now_us());

-- name: by_id
SELECT token_id, digest, parent_id, created_at, expires_at, terms, fairlane.now_us()
FROM fairlane.tokens WHERE token_id = $1 AND (expires_at IS NULL OR expires_at > fairlane.now_us());

-- name: lock
LOCK TABLE fairlane.tokens IN SHARE ROW EXCLUSIVE MODE;

-- name: clear
DELETE FROM fairlane.tokens WHERE token_id = ANY (ARRAY(
    SELECT token_id FROM fairlane.tokens WHERE expires_at <= fairlane.now_us() LIMIT $1
));

-- name: count_others
SELECT count(*), count(*) FILTER (WHERE digest = $2) FROM fairlane.tokens WHERE token_id <> $1;

-- A session expires with its token at the latest. What is stored already stays as it is.

-- name: put
INSERT INTO fairlane.tokens (token_id, digest, parent_id, created_at, expires_at, terms)
VALUES (
    $1, $2, $3, fairlane.now_us(),
    least(
        fairlane.now_us() + $4::bigint,
        (SELECT expires_at FROM fairlane.tokens WHERE token_id = $3)
    ),
    $5
)
ON CONFLICT (token_id) DO UPDATE SET token_id = excluded.token_id
RETURNING token_id, digest, parent_id, created_at, expires_at, terms, fairlane.now_us();

-- name: retire
UPDATE fairlane.tokens SET expires_at = least(expires_at, fairlane.now_us() + $2::bigint)
WHERE
    (token_id = $1 OR parent_id = $1)
    AND (expires_at IS NULL OR expires_at > fairlane.now_us())
RETURNING true;

-- name: drop
DELETE FROM fairlane.tokens
WHERE
    (token_id = $1 OR parent_id = $1)
    AND (expires_at IS NULL OR expires_at > fairlane.now_us())
RETURNING true;
