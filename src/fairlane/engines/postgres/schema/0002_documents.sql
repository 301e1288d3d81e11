-- What there is besides tasks, in one table: see core/documents.py.
CREATE TABLE fairlane.documents (
    kind       text   NOT NULL,
    id         text   COLLATE "C" NOT NULL,
    value      bytea  NOT NULL,
    at         bigint NOT NULL,
    expires_at bigint,
    alias      text,
    version    bigint NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX documents_by_time ON fairlane.documents (kind, at, id);
CREATE INDEX documents_expiring ON fairlane.documents (kind, expires_at)
WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX documents_by_alias ON fairlane.documents (kind, alias)
WHERE alias IS NOT NULL;

-- All of it or nothing. A value that is null deletes. It is a function so that nobody has to keep a
-- lock from one call to the next: a process that is suspended in between would keep all others out.
CREATE FUNCTION fairlane.write_documents(
    of_kind text, ids text[], vals bytea[], ats bigint[], ends bigint[], aliases text[],
    versions bigint[], most bigint
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1180789106, hashtext('documents ' || of_kind));
    -- Each is looked up through its index: a join would be planned by how much there is in the table.
    IF EXISTS (
        SELECT FROM unnest(ids, versions) AS change (id, version)
        WHERE change.version <> coalesce((
            SELECT stored.version FROM fairlane.documents AS stored
            WHERE stored.kind = of_kind AND stored.id = change.id
        ), 0)
    ) THEN
        RETURN 'overtaken';
    ELSIF EXISTS (
        SELECT FROM unnest(ids, vals, aliases) AS change (id, value, alias)
        WHERE change.value IS NOT NULL AND change.id <> (
            SELECT stored.id FROM fairlane.documents AS stored
            WHERE stored.kind = of_kind AND stored.alias = change.alias
        )
    ) THEN
        RETURN 'taken';
    ELSIF 0 = ANY (versions)
        AND (SELECT count(*) FROM fairlane.documents WHERE kind = of_kind)
            + cardinality(array_positions(versions, 0)) > most
    THEN
        RETURN 'full';
    END IF;
    DELETE FROM fairlane.documents WHERE kind = of_kind AND id = ANY (ARRAY(
        SELECT change.id FROM unnest(ids, vals) AS change (id, value) WHERE change.value IS NULL
    ));
    INSERT INTO fairlane.documents AS stored (kind, id, value, at, expires_at, alias, version)
    SELECT of_kind, id, value, at, expires_at, alias, version + 1
    FROM unnest(ids, versions, vals, ats, ends, aliases)
        AS change (id, version, value, at, expires_at, alias)
    WHERE value IS NOT NULL
    ON CONFLICT (kind, id) DO UPDATE SET
        value = excluded.value,
        at = excluded.at,
        expires_at = excluded.expires_at,
        alias = excluded.alias,
        version = excluded.version;
    RETURN 'done';
END $$;

-- A token's parent is one of its terms, which are an object in JSON.
INSERT INTO fairlane.documents (kind, id, value, at, expires_at, alias, version)
SELECT
    'token', token_id,
    convert_to(coalesce('{"parent_id":"' || parent_id || '",', '{'), 'UTF8')
    || substring(terms FROM 2),
    created_at, expires_at, encode(digest, 'hex'), 1
FROM fairlane.tokens;

-- The times of a schedule are a line above its definition.
INSERT INTO fairlane.documents (kind, id, value, at, version)
SELECT
    'schedule', schedule_id,
    convert_to(json_build_array(next_at, last_at, updated_at, version) || E'\n', 'UTF8')
    || definition,
    created_at, 1
FROM fairlane.schedules;

INSERT INTO fairlane.documents (kind, id, value, at, version)
SELECT 'role', role, convert_to(candidate, 'UTF8'), expires_at, 1 FROM fairlane.roles;

INSERT INTO fairlane.documents (kind, id, value, at, version)
SELECT 'audit', entry_id::text, entry, at, 1 FROM fairlane.audit;

INSERT INTO fairlane.documents (kind, id, value, at, expires_at, version)
SELECT 'sample', at::text, sample, at, at + 86400000000, 1 FROM fairlane.samples;

DROP TABLE fairlane.tokens, fairlane.schedules, fairlane.roles, fairlane.audit, fairlane.samples;
