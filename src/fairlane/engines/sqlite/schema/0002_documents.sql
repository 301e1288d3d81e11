-- What there is besides tasks, in one table: see core/documents.py.
CREATE TABLE documents (
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    value      BLOB    NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER,
    alias      TEXT,
    version    INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX documents_by_time ON documents (kind, at, id);
CREATE INDEX documents_expiring ON documents (kind, expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX documents_by_alias ON documents (kind, alias) WHERE alias IS NOT NULL;

-- A token's parent is one of its terms, which are an object in JSON.
INSERT INTO documents (kind, id, value, at, expires_at, alias, version)
SELECT
    'token', token_id,
    CAST(
        iif(parent_id IS NULL, '{', '{"parent_id":"' || parent_id || '",')
        || substr(CAST(terms AS TEXT), 2) AS BLOB
    ),
    created_at, expires_at, lower(hex(digest)), 1
FROM tokens;

-- The times of a schedule are a line above its definition.
INSERT INTO documents (kind, id, value, at, version)
SELECT
    'schedule', schedule_id,
    CAST(
        json_array(next_at, last_at, updated_at, version) || char(10) || CAST(definition AS TEXT)
        AS BLOB
    ),
    created_at, 1
FROM schedules;

INSERT INTO documents (kind, id, value, at, version)
SELECT 'role', role, CAST(holder AS BLOB), expires_at, 1 FROM roles;

INSERT INTO documents (kind, id, value, at, version)
SELECT 'audit', entry_id, entry, at, 1 FROM audit;

INSERT INTO documents (kind, id, value, at, expires_at, version)
SELECT 'sample', CAST(at AS TEXT), sample, at, at + 86400000000, 1 FROM samples;

DROP TABLE tokens;
DROP TABLE schedules;
DROP TABLE roles;
DROP TABLE audit;
DROP TABLE samples;
