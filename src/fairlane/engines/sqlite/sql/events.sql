-- name: events
SELECT id, at, entry FROM journal WHERE id > ? ORDER BY id LIMIT ?;

-- name: oldest
-- An entry that was emptied is there for its number only.
SELECT id + (entry = x'') FROM journal ORDER BY id LIMIT 1;

-- name: tail
SELECT coalesce(max(id), 0) FROM journal;
