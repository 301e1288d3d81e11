-- Who depends on whom, for as long as the parent is there: prune keeps a task while one that depends
-- on it has not ended. Of tasks from before, those count that still wait for a parent.
CREATE TABLE dependents (
    parent TEXT NOT NULL,
    child  TEXT NOT NULL,
    PRIMARY KEY (parent, child),
    CHECK (parent <> child)
) WITHOUT ROWID;
INSERT INTO dependents (parent, child) SELECT parent, child FROM bonds;
