-- For tasks that name no timeout; 0 if none is set.
ALTER TABLE types ADD COLUMN timeout REAL NOT NULL DEFAULT 0;
