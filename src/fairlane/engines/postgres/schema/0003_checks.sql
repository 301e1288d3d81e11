-- What no row may say. NOT VALID: new rows are checked, old ones are not read.
ALTER TABLE fairlane.content
    ADD CHECK (level BETWEEN 0 AND 10) NOT VALID,
    ADD CHECK (max_retries >= 0 AND returns >= 0) NOT VALID,
    ADD CHECK (timeout > 0) NOT VALID,
    ADD CHECK ((unique_key IS NULL) = (unique_states IS NULL)) NOT VALID;
ALTER TABLE fairlane.waiting
    ADD CHECK (state IN (1, 4)) NOT VALID,
    ADD CHECK (state = 1 OR due_at IS NOT NULL) NOT VALID,
    ADD CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 1) NOT VALID;
ALTER TABLE fairlane.ready
    ADD CHECK (level BETWEEN 0 AND 10) NOT VALID,
    ADD CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 1) NOT VALID;
ALTER TABLE fairlane.held
    ADD CHECK (attempt >= 1 AND retry_count >= 0 AND version >= 2) NOT VALID,
    ADD CHECK (deadline IS NULL OR started_at IS NOT NULL) NOT VALID;
ALTER TABLE fairlane.outcome
    ADD CHECK (state IN (5, 6, 7, 8)) NOT VALID,
    ADD CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 2) NOT VALID,
    ADD CHECK (result IS NULL OR state = 5) NOT VALID,
    ADD CHECK (state <> 5 OR attempt >= 1) NOT VALID;
ALTER TABLE fairlane.attempts ADD CHECK (attempt >= 1) NOT VALID;
ALTER TABLE fairlane.lingering ADD CHECK (attempt >= 1) NOT VALID;
ALTER TABLE fairlane.bonds ADD CHECK (parent <> child) NOT VALID;
ALTER TABLE fairlane.documents ADD CHECK (version >= 1) NOT VALID;
