-- Times are microseconds since 1970. States are the codes of core/states.py: 1 scheduled, 2 queued,
-- 3 executing, 4 retrying, 5 completed, 6 failed, 7 dead_letter, 8 cancelled.
--
-- Every task has one row in `content`, and exactly one in `waiting`, `ready`, `held` or `outcome`:
-- the table that has this row tells the state. So wide rows are hardly ever rewritten, and the
-- tables that change all the time are narrow and short.

CREATE TABLE fairlane.fairlane_schema (
    version      integer NOT NULL,
    clock_offset bigint  NOT NULL DEFAULT 0,  -- changed by tests only; now_us() contains a copy
    store        uuid    NOT NULL DEFAULT gen_random_uuid()  -- identifies the store, wherever it is moved
);

-- The clock. It returns the same time during a statement. Tests replace it to move the time.
CREATE FUNCTION fairlane.now_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT round(date_part('epoch', statement_timestamp()) * 1000000)::bigint + 0 $$;

-- Called by a statement that finds that another one was faster: the operation is tried again.
CREATE FUNCTION fairlane.overtaken() RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'overtaken by another call' USING ERRCODE = 'serialization_failure'; END $$;

-- One row. `version` grows with every new stream and every change of a control, so that a process
-- knows when its cache is out of date.
CREATE TABLE fairlane.catalogue (
    version bigint  NOT NULL,
    paused  boolean NOT NULL DEFAULT false,
    rate    float8  NOT NULL DEFAULT 0
);
INSERT INTO fairlane.catalogue (version) VALUES (1);

-- Always empty. Every claim "deletes" from it, only for the lock that this takes. A change of a
-- control locks it in SHARE ROW EXCLUSIVE mode, which waits for the claims that are under way and
-- blocks new ones. A statement takes its table locks before its snapshot, so a claim that had to
-- wait here sees the change. Nothing is ever written to it, so no vacuum ever locks it.
CREATE TABLE fairlane.gate ();

CREATE TABLE fairlane.lanes (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue        text NOT NULL,
    type         text NOT NULL,
    capabilities text NOT NULL,  -- a JSON array, sorted
    UNIQUE (queue, type, capabilities)
);

-- A stream: the queued tasks of one lane and level. This table only lists them; their depths come
-- from the counters, because a counter here would be a row that all transactions wait for.
CREATE TABLE fairlane.streams (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane   integer  NOT NULL,
    level  smallint NOT NULL,
    UNIQUE (lane, level)
);

CREATE TABLE fairlane.paused_queues (queue text PRIMARY KEY);

CREATE TABLE fairlane.types (
    type        text PRIMARY KEY,
    paused      boolean NOT NULL DEFAULT false,
    rate        float8  NOT NULL DEFAULT 0,
    concurrency integer NOT NULL DEFAULT 0,
    breaker     text,  -- as core/breaker.py writes it, null for none
    circuit     text   -- the same: the circuit, null if closed without failures
);

-- Token buckets, by type; '' is the one for everything.
CREATE TABLE fairlane.buckets (
    type   text PRIMARY KEY,
    tokens float8 NOT NULL,
    at     bigint NOT NULL
) WITH (fillfactor = 50);

-- The fixed part of a task. Written at submission; retry, snooze and replay change a few columns.
CREATE TABLE fairlane.content (
    task_id         uuid PRIMARY KEY,
    created_at      bigint   NOT NULL,
    run_at          bigint   NOT NULL,
    ready_at        bigint   NOT NULL,  -- with lane and level: the key of its row in `ready`
    expires_at      bigint,
    timeout         float8,
    lane            integer  NOT NULL,
    level           smallint NOT NULL,
    max_retries     smallint NOT NULL,
    returns         smallint NOT NULL DEFAULT 0,
    payload         bytea    NOT NULL,
    spec            bytea,
    idempotency_key text,
    error           bytea,              -- of the last failure, until the task ends
    unique_key      bytea,              -- the key that it holds or held (see `uniques`)
    unique_states   smallint            -- the states in which the key counts, a bit each
);

-- `linked`, here and in the next two tables: other tasks may depend on this one, or it may hold a
-- unique key, so its end takes more than moving its row. The fast path of `apply` skips it.

-- Scheduled and retrying tasks. Without `due_at`, a task waits for its parents. Rows here and in
-- `ready` are updated only when they become linked, or when their parents have ended and their own
-- time is still to come.
CREATE TABLE fairlane.waiting (
    task_id     uuid PRIMARY KEY,
    due_at      bigint,
    ready_at    bigint   NOT NULL,
    expires_at  bigint,
    updated_at  bigint   NOT NULL,
    lane        integer  NOT NULL,
    attempt     integer  NOT NULL DEFAULT 0,
    version     integer  NOT NULL DEFAULT 1,
    level       smallint NOT NULL,
    state       smallint NOT NULL,
    retry_count smallint NOT NULL DEFAULT 0,
    linked      boolean  NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX waiting_due ON fairlane.waiting (due_at);
CREATE INDEX waiting_expiring ON fairlane.waiting (expires_at) WHERE expires_at IS NOT NULL;

-- Queued tasks, in the order of claims.
CREATE TABLE fairlane.ready (
    task_id     uuid     NOT NULL,
    ready_at    bigint   NOT NULL,
    expires_at  bigint,
    updated_at  bigint   NOT NULL,
    lane        integer  NOT NULL,
    attempt     integer  NOT NULL DEFAULT 0,
    version     integer  NOT NULL DEFAULT 1,
    level       smallint NOT NULL,
    retry_count smallint NOT NULL DEFAULT 0,
    linked      boolean  NOT NULL DEFAULT false,
    PRIMARY KEY (lane, level, ready_at, task_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX ready_expiring ON fairlane.ready (expires_at) WHERE expires_at IS NOT NULL;

-- Executing tasks. `start` and `progress` update rows here. There is no index by worker: the table
-- has only what all workers hold, and is searched by worker only after a death or a lost reply.
CREATE TABLE fairlane.held (
    task_id     uuid PRIMARY KEY,
    ready_at    bigint   NOT NULL,
    expires_at  bigint,
    claimed_at  bigint   NOT NULL,
    started_at  bigint,
    deadline    bigint,
    updated_at  bigint   NOT NULL,
    progress_at bigint,
    lane        integer  NOT NULL,
    attempt     integer  NOT NULL,
    version     integer  NOT NULL,
    level       smallint NOT NULL,
    retry_count smallint NOT NULL,
    linked      boolean  NOT NULL,
    worker_id   text     NOT NULL,
    progress    bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX held_deadline ON fairlane.held (deadline) WHERE deadline IS NOT NULL;

-- Tasks that have ended.
CREATE TABLE fairlane.outcome (
    task_id      uuid PRIMARY KEY,
    completed_at bigint   NOT NULL,
    claimed_at   bigint,
    started_at   bigint,
    progress_at  bigint,
    lane         integer  NOT NULL,
    attempt      integer  NOT NULL,
    version      integer  NOT NULL,
    level        smallint NOT NULL,
    state        smallint NOT NULL,
    retry_count  smallint NOT NULL,
    worker_id    text,
    result       bytea,
    error        bytea,
    progress     bytea
);
CREATE INDEX outcome_by_state ON fairlane.outcome (state, completed_at);
-- For lists of tasks that did not complete. Completions, which are nearly all, have no entry.
CREATE INDEX outcome_listed ON fairlane.outcome (state, task_id) WHERE state <> 5;

-- Runs that did not complete. (The row in `outcome` records the one that did.)
CREATE TABLE fairlane.attempts (
    task_id    uuid    NOT NULL,
    attempt    integer NOT NULL,
    worker_id  text,
    started_at bigint,
    ended_at   bigint  NOT NULL,
    outcome    text    NOT NULL,
    error      bytea,
    PRIMARY KEY (task_id, attempt)
);

-- Runs whose task was cancelled or timed out while a worker still runs them: they keep their
-- concurrency slot until the worker reports or dies.
CREATE TABLE fairlane.lingering (
    worker_id text    NOT NULL,
    task_id   uuid    NOT NULL,
    attempt   integer NOT NULL,
    lane      integer NOT NULL,
    PRIMARY KEY (worker_id, task_id, attempt)
);

CREATE TABLE fairlane.idempotency_keys (
    idempotency_key text   PRIMARY KEY,
    task_id         uuid   NOT NULL,
    fingerprint     bytea  NOT NULL,
    expires_at      bigint NOT NULL
);
CREATE INDEX idempotency_keys_expiring ON fairlane.idempotency_keys (expires_at);

-- The last task that was accepted under a unique key. Its state decides whether the key counts.
CREATE TABLE fairlane.uniques (
    key     bytea PRIMARY KEY,
    task_id uuid  NOT NULL
);

-- Dependencies. One is fresh until its parent's row is marked as linked. A submission does not mark
-- it itself: its transaction may be a caller's, and long, and would keep the parent's row locked.
CREATE TABLE fairlane.bonds (
    parent   uuid    NOT NULL,
    child    uuid    NOT NULL,
    tolerant boolean NOT NULL,
    fresh    boolean NOT NULL,
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX bonds_of_child ON fairlane.bonds (child);
CREATE INDEX bonds_fresh ON fairlane.bonds (parent) WHERE fresh;

-- Parents that have ended in these states, and have dependents that are not released yet.
CREATE TABLE fairlane.ended_parents (
    parent uuid     PRIMARY KEY,
    state  smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE TABLE fairlane.workers (
    worker_id     text PRIMARY KEY,
    status        text    NOT NULL,
    capacity      integer NOT NULL,
    load          integer NOT NULL DEFAULT 0,
    capabilities  text    NOT NULL,  -- JSON arrays, null for all
    queues        text,
    types         text,
    host          text    NOT NULL,
    version       text    NOT NULL,
    health        text,
    lease         bigint  NOT NULL,  -- microseconds
    registered_at bigint  NOT NULL,
    seen_at       bigint  NOT NULL,
    request_id    text,              -- the last claim, and when it was granted
    claimed_at    bigint
) WITH (fillfactor = 50);

-- The journal: a row for each group of tasks that went through one transition together. The order
-- is (xid, n); it is final below the oldest transaction that is still running.
CREATE TABLE fairlane.journal (
    xid       xid8   NOT NULL DEFAULT pg_current_xact_id(),
    n         bigint GENERATED ALWAYS AS IDENTITY,
    at        bigint NOT NULL,
    lane      integer,
    level     smallint,
    verb      text   NOT NULL,
    worker_id text,
    task_ids  uuid[],
    attempts  integer[],
    seconds   float8[],
    PRIMARY KEY (xid, n)
);
-- Written often, read seldom and soon deleted: not worth compressing.
ALTER TABLE fairlane.journal
    ALTER task_ids SET STORAGE EXTERNAL,
    ALTER attempts SET STORAGE EXTERNAL,
    ALTER seconds SET STORAGE EXTERNAL;

-- One row: the newest entry that is no longer kept.
CREATE TABLE fairlane.journal_floor (
    xid xid8   NOT NULL,
    n   bigint NOT NULL
);
INSERT INTO fairlane.journal_floor (xid, n) VALUES ('0', 0);

-- The counters: see core/tally.py. Writers append deltas and never wait for each other. After every
-- 128th write, a process folds the deltas into the sums.
CREATE TABLE fairlane.tallies (
    lane    integer  NOT NULL,
    level   smallint NOT NULL,
    source  smallint NOT NULL,
    target  smallint NOT NULL,
    bucket  smallint NOT NULL,
    label   text     NOT NULL,
    times   bigint   NOT NULL,
    seconds float8   NOT NULL,
    PRIMARY KEY (lane, level, source, target, label, bucket)
) WITH (fillfactor = 50);

CREATE TABLE fairlane.tally_deltas (
    lane    integer  NOT NULL,
    level   smallint NOT NULL,
    source  smallint NOT NULL,
    target  smallint NOT NULL,
    bucket  smallint NOT NULL,
    label   text     NOT NULL,
    times   bigint   NOT NULL,
    seconds float8   NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The counters every few seconds: see core/facts.py.
CREATE TABLE fairlane.samples (
    at     bigint PRIMARY KEY,
    sample bytea  NOT NULL
);

-- Roles that one process at a time has.
CREATE TABLE fairlane.roles (
    role       text PRIMARY KEY,
    candidate  text   NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE fairlane.schedules (
    schedule_id text PRIMARY KEY,
    definition  bytea   NOT NULL,
    next_at     bigint,
    last_at     bigint,
    created_at  bigint  NOT NULL,
    updated_at  bigint  NOT NULL,
    version     integer NOT NULL DEFAULT 1
);

-- Access tokens, and sessions made from them: see core/tokens.py.
CREATE TABLE fairlane.tokens (
    token_id   text PRIMARY KEY,
    digest     bytea  NOT NULL UNIQUE,
    parent_id  text,
    created_at bigint NOT NULL,
    expires_at bigint,
    terms      bytea  NOT NULL  -- JSON
);

-- Who changed what: see core/audit.py.
CREATE TABLE fairlane.audit (
    entry_id uuid PRIMARY KEY,
    at       bigint NOT NULL,
    entry    bytea  NOT NULL  -- JSON
);
CREATE INDEX audit_by_time ON fairlane.audit (at, entry_id);

-- Every task with its state. Each table is searched only if the task was in none of those before,
-- and through its index: the planner would plan a join by statistics, and those are wrong.
CREATE VIEW fairlane.standing AS
SELECT
    task.task_id, task.lane, task.level,
    CASE
        WHEN ready.task_id IS NOT NULL THEN 2
        WHEN held.task_id IS NOT NULL THEN 3
        ELSE coalesce(waiting.state, outcome.state)
    END::smallint AS state,
    task.ready_at, task.created_at, task.run_at, task.expires_at,
    coalesce(outcome.attempt, held.attempt, ready.attempt, waiting.attempt) AS attempt,
    coalesce(outcome.retry_count, held.retry_count, ready.retry_count, waiting.retry_count)
        AS retry_count,
    task.max_retries, task.returns, task.timeout,
    coalesce(outcome.completed_at, held.updated_at, ready.updated_at, waiting.updated_at)
        AS updated_at,
    coalesce(outcome.version, held.version, ready.version, waiting.version) AS version,
    task.payload, task.spec, task.idempotency_key,
    coalesce(outcome.worker_id, held.worker_id) AS worker_id,
    coalesce(outcome.claimed_at, held.claimed_at) AS claimed_at,
    coalesce(outcome.started_at, held.started_at) AS started_at,
    CASE WHEN outcome.task_id IS NULL THEN task.error ELSE outcome.error END AS error,
    coalesce(outcome.progress, held.progress) AS progress,
    coalesce(outcome.progress_at, held.progress_at) AS progress_at,
    outcome.completed_at, outcome.result, waiting.due_at
FROM fairlane.content AS task
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.outcome WHERE outcome.task_id = task.task_id OFFSET 0
) AS outcome ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.ready
    WHERE
        outcome.task_id IS NULL
        AND ready.lane = task.lane AND ready.level = task.level
        AND ready.ready_at = task.ready_at AND ready.task_id = task.task_id
    OFFSET 0
) AS ready ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.held
    WHERE coalesce(outcome.task_id, ready.task_id) IS NULL AND held.task_id = task.task_id
    OFFSET 0
) AS held ON true
LEFT JOIN LATERAL (
    SELECT * FROM fairlane.waiting
    WHERE
        coalesce(outcome.task_id, ready.task_id, held.task_id) IS NULL
        AND waiting.task_id = task.task_id
    OFFSET 0
) AS waiting ON true;

-- For people at an SQL prompt: after `SET search_path = fairlane, public` there is a view `tasks`.
-- The type is `json`, because `jsonb` and operators on JSON refuse a \u0000, which texts may
-- contain.

CREATE FUNCTION fairlane.moment(microseconds bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT timestamptz '1970-01-01 00:00:00+00' + microseconds * interval '1 microsecond' $$;

CREATE FUNCTION fairlane.document(stored bytea) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT convert_from(stored, 'UTF8')::json $$;

CREATE FUNCTION fairlane.searchable(stored bytea) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT replace(convert_from(stored, 'UTF8'), '\u0000', '\ufffd')::json $$;

CREATE VIEW fairlane.tasks AS
SELECT
    task.task_id AS id,
    lane.type AS name,
    json '{}' AS args,
    fairlane.document(task.payload) AS kwargs,
    CASE task.state
        WHEN 1 THEN 'pending' WHEN 2 THEN 'pending' WHEN 3 THEN 'running'
        WHEN 5 THEN 'completed' WHEN 8 THEN 'cancelled' ELSE 'failed'
    END AS state,
    CASE
        WHEN task.result IS NOT NULL
        THEN json_build_object('value', fairlane.document(task.result))
    END AS result,
    coalesce(
        fairlane.searchable(task.error) ->> 'traceback', fairlane.searchable(task.error) ->> 'message'
    ) AS error,
    task.retry_count,
    task.max_retries,
    CASE WHEN task.state = 4 THEN fairlane.moment(task.due_at) END AS next_retry_at,
    fairlane.moment(task.run_at) AS scheduled_at,
    fairlane.moment(task.started_at) AS started_at,
    fairlane.moment(task.completed_at) AS completed_at,
    fairlane.moment(task.created_at) AS created_at,
    worker.worker_id,
    fairlane.moment(worker.seen_at + worker.lease) AS locked_until,
    task.timeout AS timeout_seconds,
    task.level AS priority,
    coalesce(fairlane.searchable(task.spec) -> 'tags', json '{}') AS tags
FROM fairlane.standing AS task
JOIN fairlane.lanes AS lane ON lane.id = task.lane
LEFT JOIN fairlane.workers AS worker ON worker.worker_id = task.worker_id AND task.state = 3;
