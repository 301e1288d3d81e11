-- For tasks that name no timeout; 0 if none is set.
ALTER TABLE fairlane.types ADD COLUMN timeout float8 NOT NULL DEFAULT 0;
