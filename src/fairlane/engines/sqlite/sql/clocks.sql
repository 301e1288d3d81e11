-- ?1 is now; a time above ?2 lies ahead of it.

-- name: workers
UPDATE workers SET seen_at = ?1 WHERE seen_at > ?2;

-- name: buckets
UPDATE buckets SET at = ?1 WHERE at > ?2;

-- Claims of one worker keep their distance: a repeated request finds its tasks by the time of the
-- claim.

-- name: claims
UPDATE held SET claimed_at = held.claimed_at - (worker.claimed_at - ?1)
FROM workers AS worker
WHERE worker.worker_id = held.worker_id AND worker.claimed_at > ?2 AND held.claimed_at > ?2;

-- name: last_claims
UPDATE workers SET claimed_at = ?1 WHERE claimed_at > ?2;

-- name: runs
UPDATE held SET deadline = deadline - (started_at - ?1), started_at = ?1 WHERE started_at > ?2;

-- name: ready
SELECT ready.number, ready.lane, ready.level, ready.ready_at, ready.task_id
FROM streams
CROSS JOIN ready
    ON ready.lane = streams.lane AND ready.level = streams.level AND ready.ready_at > ?1
WHERE streams.depth > 0
LIMIT ?2;

-- name: requeue
UPDATE ready SET ready_at = ?1
WHERE lane = ?2 AND level = ?3 AND ready_at = ?4 AND task_id = ?5;

-- name: note_ready
UPDATE content SET ready_at = ?1 WHERE number = ?2;

-- name: waiting
SELECT
    waiting.number, waiting.attempt, content.spec, waiting.due_at, waiting.updated_at,
    content.ready_at, content.run_at
FROM waiting CROSS JOIN content ON content.number = waiting.number
WHERE (waiting.due_at, waiting.number) > (?1, ?2)
ORDER BY waiting.due_at, waiting.number
LIMIT ?3;

-- name: redate
UPDATE waiting SET due_at = ?1, updated_at = ?2 WHERE number = ?3;

-- name: redate_content
UPDATE content SET ready_at = ?1, run_at = ?2 WHERE number = ?3;
