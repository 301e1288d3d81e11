-- Times are microseconds since 1970. States are the codes of core/states.py.

-- One row. `version` grows with every new lane and every change of a control, so that a process
-- knows when what it remembers of them is out of date.
CREATE TABLE catalogue (
    version     INTEGER NOT NULL,
    paused      INTEGER NOT NULL DEFAULT 0,
    rate        REAL    NOT NULL DEFAULT 0
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
    concurrency INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Token buckets, by type; '' is the one for everything.
CREATE TABLE buckets (
    type   TEXT PRIMARY KEY,
    tokens REAL    NOT NULL,
    at     INTEGER NOT NULL
) WITHOUT ROWID;

-- All tasks. Finished ones stay where they are: moving them to a table of their own was measured
-- to cost half again as much a task, and here, other than on a server, nothing else is gained by it.
CREATE TABLE tasks (
    task_id         TEXT PRIMARY KEY,
    lane            INTEGER NOT NULL,
    level           INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    ready_at        INTEGER NOT NULL,
    due_at          INTEGER,          -- set while scheduled or retrying
    created_at      INTEGER NOT NULL,
    run_at          INTEGER NOT NULL,
    expires_at      INTEGER,
    attempt         INTEGER NOT NULL,
    retry_count     INTEGER NOT NULL,
    max_retries     INTEGER NOT NULL,
    returns         INTEGER NOT NULL,
    timeout         REAL,
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    payload         BLOB NOT NULL,
    spec            BLOB,
    idempotency_key TEXT,
    worker_id       TEXT,             -- who holds it, or held it when it ended
    claimed_at      INTEGER,
    started_at      INTEGER,
    deadline        INTEGER,          -- set while executing, once its start was reported
    completed_at    INTEGER,          -- set in every terminal state
    error           BLOB,
    result          BLOB,
    progress        BLOB
);

-- A stream: the queued tasks of one lane and level, in the order they are claimed.
CREATE INDEX tasks_ready    ON tasks (lane, level, ready_at, task_id) WHERE state = 2;
CREATE INDEX tasks_held     ON tasks (worker_id, lane) WHERE state = 3;
CREATE INDEX tasks_due      ON tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_expiring ON tasks (expires_at) WHERE expires_at IS NOT NULL AND state IN (1, 2, 4);
CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX tasks_finished ON tasks (state, completed_at) WHERE completed_at IS NOT NULL;

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
