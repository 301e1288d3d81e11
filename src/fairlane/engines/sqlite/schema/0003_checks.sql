-- What no row may say. SQLite adds a CHECK to a table only by rewriting it, or by changing the text
-- of its schema, as https://sqlite.org/lang_altertable.html describes: rows are not read. States are
-- compared without IN, which would build a table at every insert.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ',
    CHECK (level BETWEEN 0 AND 10),
    CHECK (max_retries >= 0 AND returns >= 0),
    CHECK (timeout > 0),
    CHECK ((unique_key IS NULL) = (unique_states IS NULL))
)'
WHERE type = 'table' AND name = 'content';
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ',
    CHECK (state = 1 OR state = 4),
    CHECK (state = 1 OR due_at IS NOT NULL),
    CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 1)
)'
WHERE type = 'table' AND name = 'waiting';
UPDATE sqlite_schema SET sql = replace(sql, ',
    PRIMARY KEY (lane, level, ready_at, task_id)', ',
    CHECK (level BETWEEN 0 AND 10),
    CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 1),
    PRIMARY KEY (lane, level, ready_at, task_id)')
WHERE type = 'table' AND name = 'ready';
UPDATE sqlite_schema SET sql = replace(sql, ') WITHOUT ROWID', ',
    CHECK (attempt >= 1 AND retry_count >= 0 AND version >= 2),
    CHECK (deadline IS NULL OR started_at IS NOT NULL)
) WITHOUT ROWID')
WHERE type = 'table' AND name = 'held';
UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ',
    CHECK (state BETWEEN 5 AND 8),
    CHECK (attempt >= 0 AND retry_count >= 0 AND version >= 2),
    CHECK (result IS NULL OR state = 5),
    CHECK (state <> 5 OR attempt >= 1)
)'
WHERE type = 'table' AND name = 'outcome';
UPDATE sqlite_schema SET sql = replace(sql, ') WITHOUT ROWID', ',
    CHECK (attempt >= 1)
) WITHOUT ROWID')
WHERE type = 'table' AND name IN ('attempts', 'lingering');
UPDATE sqlite_schema SET sql = replace(sql, ') WITHOUT ROWID', ',
    CHECK (parent <> child)
) WITHOUT ROWID')
WHERE type = 'table' AND name = 'bonds';
UPDATE sqlite_schema SET sql = replace(sql, ',
    PRIMARY KEY (kind, id)', ',
    CHECK (version >= 1),
    PRIMARY KEY (kind, id)')
WHERE type = 'table' AND name = 'documents';
PRAGMA writable_schema = RESET;

-- Other processes notice a change of the schema by its version, which this raises.
CREATE INDEX temporary_index ON bonds (child, parent);
DROP INDEX temporary_index;
