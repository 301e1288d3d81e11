-- name: read
SELECT id, value, at, expires_at, alias, version FROM documents
WHERE kind = ? AND id IN (SELECT value FROM json_each(?));

-- name: find
SELECT id, value, at, expires_at, alias, version FROM documents WHERE kind = ? AND alias = ?;

-- name: oldest
SELECT id, value, at, expires_at, alias, version FROM documents
WHERE kind = ? AND (at, id) > (?, ?)
ORDER BY at, id
LIMIT ? OFFSET ?;

-- name: newest
SELECT id, value, at, expires_at, alias, version FROM documents
WHERE kind = ? AND (at, id) < (?, ?)
ORDER BY at DESC, id DESC
LIMIT ? OFFSET ?;

-- name: exists
SELECT EXISTS (SELECT 1 FROM documents WHERE kind = ? AND id = ?);

-- name: taken
SELECT EXISTS (SELECT 1 FROM documents WHERE kind = ? AND alias = ? AND id <> ?);

-- name: count
SELECT count(*) FROM documents WHERE kind = ?;

-- name: put
INSERT INTO documents (kind, id, value, at, expires_at, alias, version)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, id) DO UPDATE SET
    value = excluded.value,
    at = excluded.at,
    expires_at = excluded.expires_at,
    alias = excluded.alias,
    version = excluded.version;

-- name: drop
DELETE FROM documents WHERE kind = ? AND id = ?;

-- name: expire
DELETE FROM documents
WHERE
    kind = ?1
    AND id IN (SELECT id FROM documents WHERE kind = ?1 AND expires_at <= ?2 LIMIT ?3);
