"""How a session is set up, and what the server's settings promise."""

from __future__ import annotations

from collections.abc import Mapping

# The planner would choose by statistics, and those of a queue are always wrong: a table that was
# empty when its plan was made holds a million rows a minute later, and the plan stays. Every
# statement here is written for one plan: nested loops over indexes, in the order of the indexes.
_PLANS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}

# What a role or a database may have set for other purposes.
_BEHAVIOUR = {
    "application_name": "fairlane",
    "search_path": "pg_catalog",
    "default_transaction_isolation": "read committed",
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "10s",  # a process that stands still holds up others
    "idle_session_timeout": "0",
}


def _session() -> str:
    values = ", ".join(f"('{name}', '{value}')" for name, value in (_PLANS | _BEHAVIOUR).items())
    # Only those that this server knows; and first the one that could cut the rest short.
    return (
        "SET statement_timeout = '30s'; "  # noqa: S608 (nothing in it comes from outside)
        "SELECT set_config(name, wanted.value, false) "
        f"FROM (VALUES {values}) AS wanted (name, value) JOIN pg_settings USING (name)"
    )


SESSION = _session()

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
