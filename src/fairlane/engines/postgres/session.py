"""The settings of a session, and warnings about the settings of the server."""

from __future__ import annotations

from collections.abc import Mapping

# The planner goes by statistics, and those of a queue are always wrong: a table that was empty when
# a plan was made holds a million rows a minute later, and the plan is kept. Every statement here is
# written for one plan: nested loops over indexes, in the order of the indexes.
_PLANS = {
    "enable_indexscan": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
    "jit_above_cost": "-1",  # off; asyncpg changes the setting `jit` itself
}

# Settings that change what a statement means. A role, a database or a caller may have others.
_MEANING = {
    "search_path": "pg_catalog",
    "client_encoding": "UTF8",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
}

# A time limit that is too short would abort operations; without any, a process that is suspended
# would block others.
_LIMITS = {"statement_timeout": "30s", "lock_timeout": "5s"}

# Settings that a role or a database may have for other purposes.
_BEHAVIOUR = {
    **_LIMITS,
    "transaction_timeout": "40s",
    # A client whose machine is gone is noticed, and gives up its locks.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
    "idle_in_transaction_session_timeout": "10s",
    "idle_session_timeout": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}


def _settings(columns: str, settings: Mapping[str, str]) -> str:
    """Return a statement that selects `columns` for each setting that the server knows."""
    values = ", ".join(f"('{name}', '{value}')" for name, value in settings.items())
    return (
        f"SELECT {columns} FROM (VALUES {values}) AS wanted (name, value) "  # noqa: S608 (all ours)
        "WHERE current_setting(name, true) IS NOT NULL"
    )


_FOR_GOOD = _settings("set_config(name, value, false)", _BEHAVIOUR | _MEANING | _PLANS)

NO_TIME_LIMIT = _settings("set_config(name, value, true)", {"transaction_timeout": "0"})
"""Lifts the time limit of the transaction that has begun."""

NAME = "fairlane"
"""What sessions are called that belong to no worker."""


def session_name(worker_id: str) -> str:
    """Return what the sessions of a worker are called. The server keeps 63 bytes of a name."""
    return f"{NAME} {worker_id}"[:63]


PROBE = "SELECT WHERE pg_backend_pid() = {pid}"
"""Returns no row if a pooler is in between, because a pooler invents the pid."""

SESSION = (
    # First the one that could abort the rest.
    "SELECT set_config('statement_timeout', '30s', false) WHERE pg_backend_pid() = {pid}; "
    f"{_FOR_GOOD} AND pg_backend_pid() = {{pid}}"
)
"""Sets up a session. Behind a pooler it does nothing and returns no row, like PROBE."""

START = "BEGIN ISOLATION LEVEL READ COMMITTED; " + _settings(
    "set_config(name, value, true)", _BEHAVIOUR | _MEANING | _PLANS
)
"""Begins a transaction with the settings of a session: behind a pooler, sessions are shared."""

_BORROWED = (
    "name, current_setting(name), set_config(name, value, true), current_database()::text, "
    "(SELECT store::text FROM fairlane.fairlane_schema)"
)

BORROW = _settings(_BORROWED, _MEANING | _PLANS)
"""Sets up a caller's transaction. Returns the settings before, and the store.

The caller's time limits stay in force.
"""

BORROW_OURS = _settings(_BORROWED, _LIMITS | _MEANING | _PLANS)
"""The same for a transaction that Fairlane began and a handler uses."""

GIVE_BACK = (
    "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS was (name, value)"
)

IDENTITY = "SELECT current_database()::text, store::text FROM fairlane.fairlane_schema"

# A claim reads a stream from its beginning, where the dead rows of all tasks lie that were claimed
# since the last vacuum. Autovacuum runs once a minute: by then there can be a million of them.
# Without INDEX_CLEANUP ON, a vacuum skips the indexes if there are few dead rows.
SWEEP_ROOM = """
VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0)
    fairlane.ready, fairlane.held, fairlane.waiting, fairlane.tally_deltas
"""

SETTINGS = """
SELECT name, setting FROM pg_settings
WHERE name IN (
    'server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names'
)
ORDER BY name
"""


def warnings_about(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return warnings about settings with which tasks can get lost."""
    found = []
    if settings.get("fsync") == "off":
        found.append("fsync is off: a power cut can destroy the whole database.")
    if settings.get("full_page_writes") == "off":
        found.append("full_page_writes is off: a power cut can corrupt the database.")
    if settings.get("synchronous_commit") == "off":
        found.append(
            "synchronous_commit is off: a crash of the server can lose what was accepted in the "
            "last second."
        )
    return tuple(found)
