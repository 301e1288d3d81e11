-- name: found
SELECT
    EXISTS (SELECT FROM pg_namespace WHERE nspname = 'fairlane'),
    EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'fairlane')
    ),
    EXISTS (
        SELECT FROM pg_class
        WHERE
            relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'fairlane')
            AND relname = 'fairlane_schema'
    );

-- name: version
SELECT version FROM fairlane.fairlane_schema;

-- Only one process migrates at a time.

-- name: lock
SELECT pg_advisory_xact_lock($1);

-- End the other sessions of Fairlane, as far as rights allow (see leases.sql).

-- name: end_sessions
SELECT pg_terminate_backend(activity.pid)
FROM pg_stat_activity AS activity
JOIN pg_roles AS role ON role.oid = activity.usesysid
WHERE
    (activity.application_name = $1 OR activity.application_name LIKE $1 || ' %')
    AND activity.datname = current_database()
    AND activity.pid <> pg_backend_pid()
    AND pg_has_role(activity.usesysid, 'MEMBER')
    AND (NOT role.rolsuper OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user));

-- name: may_end_sessions
SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
WHERE proname = 'pg_terminate_backend' AND pronamespace = 'pg_catalog'::regnamespace;

-- name: create
CREATE SCHEMA fairlane;

-- name: note_first
INSERT INTO fairlane.fairlane_schema (version) VALUES ($1);

-- name: note
UPDATE fairlane.fairlane_schema SET version = $1;

-- name: shift
UPDATE fairlane.fairlane_schema SET clock_offset = clock_offset + $1 RETURNING clock_offset;

-- name: clock
CREATE OR REPLACE FUNCTION fairlane.now_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$
    SELECT
        round(date_part('epoch', statement_timestamp()) * 1000000)::bigint
        + /* BEGIN offset */ 0 /* END offset */
$$;

-- The view in `public`, for people at an SQL prompt. Its comment says whose it is.

-- name: public_view
SELECT
    relkind = 'v' AND coalesce(obj_description(view.oid, 'pg_class'), '') LIKE 'Fairlane:%',
    ARRAY(
        SELECT
            format(
                'GRANT %s ON public.tasks TO %s',
                given.privilege_type,
                CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
            )
        FROM aclexplode(view.relacl) AS given
        WHERE given.grantee <> view.relowner
    )
FROM pg_class AS view
WHERE view.relnamespace = to_regnamespace('public') AND view.relname = 'tasks';

-- name: drop_view
DROP VIEW public.tasks;

-- name: create_view
CREATE VIEW public.tasks AS SELECT * FROM fairlane.tasks;

-- name: sign_view
COMMENT ON VIEW public.tasks IS 'Fairlane: the tasks of this database, see fairlane.tasks';
