-- name: record
INSERT INTO audit (entry_id, at, entry) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: trim
DELETE FROM audit
WHERE entry_id IN (SELECT entry_id FROM audit ORDER BY at DESC, entry_id DESC LIMIT ?1 OFFSET ?2);

-- name: newest
SELECT entry_id, at, entry FROM audit ORDER BY at DESC, entry_id DESC LIMIT ?;

-- name: older
SELECT entry_id, at, entry FROM audit
WHERE (at, entry_id) < (SELECT at, entry_id FROM audit WHERE entry_id = ?)
ORDER BY at DESC, entry_id DESC
LIMIT ?;
