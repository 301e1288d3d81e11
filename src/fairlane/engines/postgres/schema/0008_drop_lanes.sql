-- The transaction that closed a lane, so that no new submission uses it: see sql/lanes.sql. An older
-- version would store tasks in a lane that it remembers and that is gone.
ALTER TABLE fairlane.lanes ADD COLUMN closed_by xid8;
