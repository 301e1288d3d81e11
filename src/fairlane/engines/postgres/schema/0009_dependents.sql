-- Who depends on whom, for as long as the parent is there: prune keeps a task while one that depends
-- on it has not ended. Of tasks from before, those count that still wait for a parent.
CREATE TABLE fairlane.dependents (
    parent uuid NOT NULL,
    child  uuid NOT NULL,
    PRIMARY KEY (parent, child),
    CHECK (parent <> child)
);
INSERT INTO fairlane.dependents (parent, child) SELECT parent, child FROM fairlane.bonds;
