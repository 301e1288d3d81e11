-- name: tokens
SELECT token_id, digest, parent_id, created_at, expires_at, terms, ?1
FROM tokens WHERE expires_at IS NULL OR expires_at > ?1;

-- name: by_digest
SELECT token_id, digest, parent_id, created_at, expires_at, terms, ?2
FROM tokens WHERE digest = ?1 AND (expires_at IS NULL OR expires_at > ?2);

-- name: by_id
SELECT token_id, digest, parent_id, created_at, expires_at, terms, ?2
FROM tokens WHERE token_id = ?1 AND (expires_at IS NULL OR expires_at > ?2);

-- name: clear
DELETE FROM tokens
WHERE token_id IN (SELECT token_id FROM tokens WHERE expires_at <= ?1 LIMIT ?2);

-- name: count_others
SELECT count(*), coalesce(sum(digest = ?2), 0) FROM tokens WHERE token_id <> ?1;

-- name: put
-- A session expires with its token at the latest. What is stored already stays as it is.
INSERT INTO tokens (token_id, digest, parent_id, created_at, expires_at, terms)
VALUES (
    ?1, ?2, ?3, ?4,
    min(
        coalesce(?4 + ?5, (SELECT expires_at FROM tokens WHERE token_id = ?3)),
        coalesce((SELECT expires_at FROM tokens WHERE token_id = ?3), ?4 + ?5)
    ),
    ?6
)
ON CONFLICT (token_id) DO UPDATE SET token_id = excluded.token_id
RETURNING token_id, digest, parent_id, created_at, expires_at, terms, ?4;

-- name: retire
UPDATE tokens SET expires_at = min(coalesce(expires_at, ?3), ?3)
WHERE (token_id = ?1 OR parent_id = ?1) AND (expires_at IS NULL OR expires_at > ?2);

-- name: drop
DELETE FROM tokens
WHERE (token_id = ?1 OR parent_id = ?1) AND (expires_at IS NULL OR expires_at > ?2);
