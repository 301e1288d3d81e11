-- Times are microseconds since 1970. States are the codes of core/states.py.

-- One row. `version` grows with every new lane and every change of a control, so that a process
-- knows when what it remembers of them is out of date.
CREATE TABLE catalogue (
    version      INTEGER NOT NULL,
    paused       INTEGER NOT NULL DEFAULT 0,
    rate         REAL    NOT NULL DEFAULT 0,
    clock_offset INTEGER NOT NULL DEFAULT 0  -- moved by tests only
);
INSERT INTO catalogue (version) VALUES (1);

CREATE TABLE lanes (
    id           INTEGER PRIMARY KEY,
    queue        TEXT NOT NULL,
    type         TEXT NOT NULL,
    capabilities TEXT NOT NULL,  -- a JSON array, sorted
    UNIQUE (queue, type, capabilities)
);

CREATE TABLE paused_queues (queue TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE types (
    type        TEXT PRIMARY KEY,
    paused      INTEGER NOT NULL DEFAULT 0,
    rate        REAL    NOT NULL DEFAULT 0,
    concurrency INTEGER NOT NULL DEFAULT 0,
    breaker     BLOB,              -- JSON; then how its circuit stands: see core/breaker.py
    failures    BLOB,
    open_until  INTEGER
) WITHOUT ROWID;
CREATE INDEX types_with_breaker ON types (type) WHERE breaker IS NOT NULL;

-- Token buckets, by type; '' is the one for everything.
CREATE TABLE buckets (
    type   TEXT PRIMARY KEY,
    tokens REAL    NOT NULL,
    at     INTEGER NOT NULL
) WITHOUT ROWID;

-- A task is a row in `content`, written once, and a small row in exactly one of `waiting`, `ready`,
-- `held` and `outcome`: its state is the table that row is in. So the hot path never rewrites a wide
-- row. What changes seldom (level, ready_at, returns, timeout, error, progress) is in the content.
CREATE TABLE content (
    number          INTEGER PRIMARY KEY,
    task_id         TEXT    NOT NULL UNIQUE,
    lane            INTEGER NOT NULL,
    level           INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    run_at          INTEGER NOT NULL,
    ready_at        INTEGER NOT NULL,
    expires_at      INTEGER,
    max_retries     INTEGER NOT NULL,
    returns         INTEGER NOT NULL DEFAULT 0,
    timeout         REAL,
    spec            BLOB,              -- ahead of the payload: a filter reads it without that
    idempotency_key TEXT,
    unique_key      BLOB,              -- what it is unique by, and in which states
    unique_states   INTEGER,
    payload         BLOB    NOT NULL,
    error           BLOB,
    progress        BLOB
);

-- Scheduled or retrying, until due_at; without one until all its parents have ended.
CREATE TABLE waiting (
    number      INTEGER PRIMARY KEY,
    attempt     INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    due_at      INTEGER,
    task_id     TEXT    NOT NULL
);
CREATE INDEX waiting_due ON waiting (due_at);
CREATE INDEX waiting_by_id ON waiting (state, task_id);

-- Queued. A stream is the tasks of one lane and level, in the order they are claimed.
CREATE TABLE ready (
    lane        INTEGER NOT NULL,
    level       INTEGER NOT NULL,
    ready_at    INTEGER NOT NULL,
    task_id     TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (lane, level, ready_at, task_id)
) WITHOUT ROWID;

-- Executing. Never large, so whoever looks for a worker's tasks, or counts those of a type, reads
-- all of it: an index would cost every task more than that. It has all that settling needs to know.
CREATE TABLE held (
    task_id     TEXT    PRIMARY KEY,
    number      INTEGER NOT NULL,
    lane        INTEGER NOT NULL,
    level       INTEGER NOT NULL,
    ready_at    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    worker_id   TEXT    NOT NULL,
    claimed_at  INTEGER NOT NULL,
    started_at  INTEGER,           -- these two once its start was reported
    deadline    INTEGER
) WITHOUT ROWID;

-- Ended.
CREATE TABLE outcome (
    number       INTEGER PRIMARY KEY,
    attempt      INTEGER NOT NULL,
    retry_count  INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    worker_id    TEXT,
    claimed_at   INTEGER,
    started_at   INTEGER,
    completed_at INTEGER NOT NULL,
    task_id      TEXT,              -- of what did not complete: what did need not pay for the index
    result       BLOB
);
CREATE INDEX outcome_by_state ON outcome (state, completed_at);
CREATE INDEX outcome_by_id ON outcome (state, task_id, completed_at, worker_id)
WHERE task_id IS NOT NULL;

-- All of it together, for whoever reads.
CREATE VIEW tasks AS
SELECT
    content.number,
    content.task_id,
    content.lane,
    content.level,
    CASE
        WHEN ready.number IS NOT NULL THEN 2
        WHEN held.number IS NOT NULL THEN 3
        ELSE coalesce(waiting.state, outcome.state)
    END AS state,
    content.ready_at,
    waiting.due_at,
    content.created_at,
    content.run_at,
    content.expires_at,
    coalesce(ready.attempt, held.attempt, waiting.attempt, outcome.attempt) AS attempt,
    coalesce(ready.retry_count, held.retry_count, waiting.retry_count, outcome.retry_count)
        AS retry_count,
    content.max_retries,
    content.returns,
    content.timeout,
    coalesce(
        ready.updated_at,
        max(held.claimed_at, coalesce(json_extract(content.progress, '$[2]'), 0)),
        waiting.updated_at,
        outcome.completed_at
    ) AS updated_at,
    coalesce(ready.version, held.version, waiting.version, outcome.version) AS version,
    content.payload,
    content.spec,
    content.idempotency_key,
    coalesce(held.worker_id, outcome.worker_id) AS worker_id,
    coalesce(held.claimed_at, outcome.claimed_at) AS claimed_at,
    coalesce(held.started_at, outcome.started_at) AS started_at,
    outcome.completed_at,
    content.error,
    outcome.result,
    content.progress
FROM content
LEFT JOIN waiting ON waiting.number = content.number
LEFT JOIN held ON held.task_id = content.task_id
LEFT JOIN outcome ON outcome.number = content.number
LEFT JOIN ready
    ON ready.lane = content.lane
    AND ready.level = content.level
    AND ready.ready_at = content.ready_at
    AND ready.task_id = content.task_id;

-- When tasks expire that may still be waiting by then. A task that is held at that time loses its
-- entry, and gets it back if it has to wait again.
CREATE TABLE expiries (
    expires_at INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    PRIMARY KEY (expires_at, number)
) WITHOUT ROWID;

-- Runs that did not complete. (The one that did is in its task's own row.)
CREATE TABLE attempts (
    task_id    TEXT    NOT NULL,
    attempt    INTEGER NOT NULL,
    worker_id  TEXT,
    started_at INTEGER,
    ended_at   INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,
    error      BLOB,
    PRIMARY KEY (task_id, attempt)
) WITHOUT ROWID;

-- Attempts whose task has moved on (cancelled, timed out) while a worker still runs them: they
-- keep their concurrency slot until the worker lets go or dies.
CREATE TABLE lingering (
    worker_id TEXT    NOT NULL,
    task_id   TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    lane      INTEGER NOT NULL,
    PRIMARY KEY (worker_id, task_id, attempt)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    idempotency_key TEXT PRIMARY KEY,
    task_id         TEXT    NOT NULL,
    fingerprint     BLOB    NOT NULL,
    expires_at      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

-- Who holds which unique key, and the states in which it counts: see core/uniqueness.py.
CREATE TABLE uniques (
    key     BLOB    PRIMARY KEY,
    task_id TEXT    NOT NULL UNIQUE,
    states  INTEGER NOT NULL
) WITHOUT ROWID;

-- Scheduled tasks and the live ones they wait for: see core/dependencies.py.
CREATE TABLE bonds (
    parent   TEXT    NOT NULL,
    child    TEXT    NOT NULL,
    tolerant INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX bonds_by_child ON bonds (child);

-- Parents that have ended, in which state, and whose bonds are not all resolved yet.
CREATE TABLE ended_parents (
    parent TEXT    PRIMARY KEY,
    state  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workers (
    worker_id     TEXT PRIMARY KEY,
    status        TEXT    NOT NULL,
    capacity      INTEGER NOT NULL,
    load          INTEGER NOT NULL DEFAULT 0,
    capabilities  TEXT    NOT NULL,   -- JSON arrays, null for all
    queues        TEXT,
    types         TEXT,
    host          TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    health        TEXT,
    lease         INTEGER NOT NULL,   -- microseconds
    registered_at INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    request_id    TEXT,               -- the last claim, and when it was granted
    claimed_at    INTEGER
) WITHOUT ROWID;
CREATE INDEX workers_dead ON workers (seen_at) WHERE status = 'dead';

-- How many tasks are queued in each stream.
CREATE TABLE streams (
    lane  INTEGER NOT NULL,
    level INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    PRIMARY KEY (lane, level)
) WITHOUT ROWID;

-- Counted transitions: see core/tally.py.
CREATE TABLE tallies (
    lane    INTEGER NOT NULL,
    level   INTEGER NOT NULL,
    source  INTEGER NOT NULL,
    target  INTEGER NOT NULL,
    label   TEXT    NOT NULL,
    bucket  INTEGER NOT NULL,
    times   INTEGER NOT NULL,
    seconds REAL    NOT NULL,
    PRIMARY KEY (lane, level, source, target, label, bucket)
) WITHOUT ROWID;

-- One row a transaction, holding all its transitions: see core/journal.py.
CREATE TABLE journal (
    id    INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    entry BLOB    NOT NULL
);

-- Counters as they stood at times: see core/facts.py.
CREATE TABLE samples (
    at     INTEGER PRIMARY KEY,
    sample BLOB NOT NULL
);

-- Who sees to what there need be only one for.
CREATE TABLE roles (
    role       TEXT PRIMARY KEY,
    holder     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE schedules (
    schedule_id TEXT PRIMARY KEY,
    definition  BLOB    NOT NULL,
    next_at     INTEGER,
    last_at     INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    version     INTEGER NOT NULL
) WITHOUT ROWID;

-- Access tokens, and sessions made from them: see core/tokens.py.
CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    digest     BLOB    NOT NULL UNIQUE,
    parent_id  TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    terms      BLOB    NOT NULL  -- JSON
) WITHOUT ROWID;

-- Who changed what: see core/audit.py.
CREATE TABLE audit (
    entry_id TEXT PRIMARY KEY,
    at       INTEGER NOT NULL,
    entry    BLOB    NOT NULL  -- JSON
) WITHOUT ROWID;
CREATE INDEX audit_by_time ON audit (at, entry_id);
