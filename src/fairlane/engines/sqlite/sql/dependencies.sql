-- name: parents
SELECT task_id, state FROM tasks WHERE task_id IN (SELECT value FROM json_each(?));

-- name: bond
INSERT INTO bonds (parent, child, tolerant) VALUES (?, ?, ?);

-- name: dependent
INSERT OR IGNORE INTO dependents (parent, child) VALUES (?, ?);
