-- name: record
INSERT INTO fairlane.audit (entry_id, at, entry)
SELECT entry_id::uuid, fairlane.now_us(), entry
FROM unnest($1::text[], $2::bytea[]) AS told (entry_id, entry)
ON CONFLICT DO NOTHING;

-- name: trim
DELETE FROM fairlane.audit WHERE entry_id = ANY (ARRAY(
    SELECT entry_id FROM fairlane.audit
    WHERE (at, entry_id) <= (
        SELECT newest.at, newest.entry_id FROM fairlane.audit AS newest
        ORDER BY newest.at DESC, newest.entry_id DESC
        LIMIT 1 OFFSET $2
    )
    LIMIT $1
    FOR UPDATE SKIP LOCKED
));

-- name: newest
SELECT entry_id::text, at, entry FROM fairlane.audit
ORDER BY at DESC, entry_id DESC
LIMIT $1;

-- name: older
SELECT entry_id::text, at, entry FROM fairlane.audit
WHERE (at, entry_id) < (
    SELECT last.at, last.entry_id FROM fairlane.audit AS last WHERE last.entry_id = $1::text::uuid
)
ORDER BY at DESC, entry_id DESC
LIMIT $2;
