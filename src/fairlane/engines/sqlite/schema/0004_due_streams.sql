-- A claim looks for due tasks by stream when there are many. Rows from before get their stream here;
-- a task that waits stays in it.
ALTER TABLE waiting ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
ALTER TABLE waiting ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
UPDATE waiting SET (lane, level) = (
    SELECT lane, level FROM content WHERE content.number = waiting.number
);
CREATE INDEX waiting_by_stream ON waiting (lane, level, due_at, task_id) WHERE due_at IS NOT NULL;
