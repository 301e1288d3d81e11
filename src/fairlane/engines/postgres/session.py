"""How a session is set up, and what the server's settings promise."""

from __future__ import annotations

from collections.abc import Mapping

# The planner would choose by statistics, and those of a queue are always wrong: a table that was
# empty when its plan was made holds a million rows a minute later, and the plan stays. Every
# statement here is written for one plan: nested loops over indexes, in the order of the indexes.
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
    "jit_above_cost": "-1",  # none; asyncpg has a hand in the setting `jit` itself
}

# What decides how a statement is read: a role, a database or a caller may have it otherwise.
_MEANING = {
    "search_path": "pg_catalog",
    "client_encoding": "UTF8",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
}

# A time limit that is too short would cut operations off in the middle; without any, a process that
# stands still would hold up others.
_LIMITS = {"statement_timeout": "30s", "lock_timeout": "5s"}

# What a role or a database may have set for other purposes.
_BEHAVIOUR = {
    **_LIMITS,
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "10s",
    "idle_session_timeout": "0",
    "application_name": "fairlane",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}


def _settings(columns: str, settings: Mapping[str, str]) -> str:
    """A statement that goes through those of these settings that this server knows."""
    values = ", ".join(f"('{name}', '{value}')" for name, value in settings.items())
    return (
        f"SELECT {columns} FROM (VALUES {values}) AS wanted (name, value) "  # noqa: S608 (all ours)
        "WHERE current_setting(name, true) IS NOT NULL"
    )


_FOR_GOOD = _settings("set_config(name, value, false)", _BEHAVIOUR | _MEANING | _PLANS)

PROBE = "SELECT WHERE pg_backend_pid() = {pid}"
"""Finds nothing where a pooler, which has a pid of its own making, stands in between."""

SESSION = (
    # First of all the one that could cut the rest short.
    "SELECT set_config('statement_timeout', '30s', false) WHERE pg_backend_pid() = {pid}; "
    f"{_FOR_GOOD} AND pg_backend_pid() = {{pid}}"
)
"""Sets a session up; does nothing and finds nothing where PROBE would not."""

START = "BEGIN ISOLATION LEVEL READ COMMITTED; " + _settings(
    "set_config(name, value, true)", _BEHAVIOUR | _MEANING | _PLANS
)
"""Begins a transaction set up like a session of ours, for where sessions are not ours to set up."""

_BORROWED = (
    "name, current_setting(name), set_config(name, value, true), current_database()::text, "
    "(SELECT store::text FROM fairlane.fairlane_schema)"
)

BORROW = _settings(_BORROWED, _MEANING | _PLANS)
"""Sets a caller's transaction up; answers how it was, and in which store it is.

Their time limits stay in force: it is their transaction.
"""

BORROW_OURS = _settings(_BORROWED, _LIMITS | _MEANING | _PLANS)
"""The same for a transaction of ours that a handler has its hands on."""

GIVE_BACK = (
    "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS was (name, value)"
)

IDENTITY = "SELECT current_database()::text, store::text FROM fairlane.fairlane_schema"

# A claim begins reading a stream where it begins, and there lie the remains of all tasks that were
# claimed since the last vacuum. The server looks for work of this kind once a minute, by which time
# there can be a million of them. Index cleanup would be left out where there is little to clean.
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
    """Sentences about settings under which tasks can get lost."""
    found = []
    if settings.get("fsync") == "off":
        found.append("fsync is off: a power cut can destroy the whole database.")
    if settings.get("full_page_writes") == "off":
        found.append("full_page_writes is off: a power cut can corrupt the database.")
    if settings.get("synchronous_commit") == "off":
        found.append(
            "synchronous_commit is off: a crash of the server can undo what was accepted in the "
            "last second."
        )
    return tuple(found)
