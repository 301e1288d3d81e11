-- A claim looks for due tasks by stream when there are many.
CREATE INDEX waiting_by_stream ON fairlane.waiting (lane, level, due_at, task_id)
WHERE due_at IS NOT NULL;
