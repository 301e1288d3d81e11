-- name: circuit
SELECT failures, open_until FROM types WHERE type = ?;

-- name: set_circuit
UPDATE types SET failures = ?, open_until = ? WHERE type = ?;
