-- What follows when tasks end: see dependents.py.

-- name: concerns
SELECT
    EXISTS (SELECT 1 FROM bonds) OR EXISTS (SELECT 1 FROM ended_parents),
    EXISTS (SELECT 1 FROM uniques),
    EXISTS (SELECT 1 FROM types WHERE breaker IS NOT NULL);

-- name: keys
SELECT uniques.key, uniques.states
FROM json_each(?) AS ended CROSS JOIN uniques ON uniques.task_id = ended.value;

-- name: drop_key
DELETE FROM uniques WHERE key = ?;

-- name: cut_loose
DELETE FROM bonds WHERE child IN (SELECT value FROM json_each(?));

-- name: note_parents
INSERT OR IGNORE INTO ended_parents (parent, state)
SELECT ended.value, ?
FROM json_each(?) AS ended
WHERE EXISTS (SELECT 1 FROM bonds WHERE bonds.parent = ended.value);

-- name: next_parent
SELECT parent, state FROM ended_parents LIMIT 1;

-- name: bonds
SELECT child, tolerant FROM bonds WHERE parent = ? LIMIT ?;

-- name: drop_bonds
DELETE FROM bonds WHERE parent = ? AND child IN (SELECT value FROM json_each(?));

-- name: drop_parent
DELETE FROM ended_parents WHERE parent = ?;

-- name: free
SELECT met.value
FROM json_each(?) AS met
WHERE NOT EXISTS (SELECT 1 FROM bonds WHERE bonds.child = met.value);

-- name: due_by_clock
UPDATE waiting
SET due_at = (SELECT run_at FROM content WHERE content.number = waiting.number)
WHERE number = ?
    AND (SELECT run_at FROM content WHERE content.number = waiting.number) > ?;
