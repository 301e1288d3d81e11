"""Every engine has the same rooms: a file of one name holds the same part of each engine.

A difference needs a line here with its reason. A line that is no longer true fails, too.
"""

from pathlib import Path

import pytest

import fairlane
from fairlane.core.store import Operations

ENGINES = Path(fairlane.__file__).parent / "engines"

ROOMS = {
    "accounting",
    "admission",
    "apply",
    "calls",
    "circuits",
    "claim",
    "claim_limits",
    "claim_order",
    "clocks",
    "context",
    "control",
    "deletion",
    "dependencies",
    "dependents",
    "documents",
    "driver",
    "due",
    "engine",
    "errors",
    "events",
    "find",
    "inspect",
    "lanes",
    "leases",
    "moves",
    "overview",
    "reruns",
    "rows",
    "schema",
    "submit",
    "wakeup",
}

OWN = {
    "sqlite": {
        "driver_caller_transactions": "one file: its connections differ little from our own",
        "driver_database": "opens files and sets pragmas",
        "driver_files": "files can be replaced below those who have them open",
        "driver_transaction": "a handler's transaction holds the writer",
        "lock": "writers of several processes take turns by a lock on a file",
        "notices": "inotify tells of writes by other processes",
        "threads": "sqlite3 blocks: all work is done on a thread",
    },
    "postgres": {
        "address": "a URL for two drivers",
        "admission_keys": "keys are locked before they are judged",
        "caller_transactions": "callers bring connections of six libraries",
        "driver_async": "asyncpg",
        "driver_sync": "psycopg",
        "pool": "connections are kept",
        "session": "settings of a session",
        "statements": "puts the shared part of statements in its place",
        "submit_batch": "tasks that are alike are sent as columns",
    },
    "redis": {
        "address": "a URL for servers, sentinels and sockets",
        "catalogue": "the version of lanes and controls, for scripts",
        "connection_errors": "what lies beneath redis-py's errors",
        "driver_async": "redis-py for asyncio",
        "driver_sync": "redis-py for threads",
        "driver_wire": "what both have in common",
        "document_writes": "the part of documents that scripts need which write some",
        "durability": "read from the server's settings",
        "heads": "reads the beginnings of many tasks for find and overview",
        "keys": "names of keys",
        "replays": "what replay and rerun have in common",
        "record": "a task packed into bytes, for Python and for Lua",
        "scripts": "puts scripts together",
        "sentinels": "who is the master",
        "submission": "the last part of two scripts: with documents, and without",
        "slots": "counted only where a limit asks for it",
    },
    "http": {
        "address": "a URL, and the headers of a token",
        "decode": "what the API answers",
        "decode_schedules": "the same about schedules",
        "driver_async": "requests from asyncio",
        "driver_sync": "requests from threads",
        "filters": "filters as the API takes them",
        "schedules": "written once for the others, with documents",
        "unsupported": "what a server does not offer",
        "workers": "the worker protocol: claim, settle, heartbeat in one",
        "workflow_changes": "the server composes them for the others",
        "workflows": "written once for the others, with documents",
    },
}

LACKS = {
    "sqlite": {
        "errors": "sqlite3 has few; the driver names them",
    },
    "postgres": {},
    "redis": {
        "dependencies": "submission.lua looks at parents and stores in one script",
    },
    "http": dict.fromkeys(
        ROOMS - {"calls", "control", "driver", "engine", "errors", "events", "inspect", "submit"},
        "the server has it",
    ),
}


def rooms(engine: str) -> set[str]:
    """Modules and packages; for Redis also the parts of its scripts."""
    folder = ENGINES / engine
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    parts = {path.stem for path in folder.glob("lua/lib/*.lua")}
    return modules | packages | parts


@pytest.mark.parametrize("engine", OWN)
def test_an_engine_has_the_same_rooms_as_the_others(engine: str) -> None:
    found = rooms(engine)
    assert found - ROOMS == OWN[engine].keys()
    assert ROOMS - found == LACKS[engine].keys()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_statements_of_a_module_lie_in_a_file_of_its_name(engine: str) -> None:
    files = {path.stem for path in (ENGINES / engine).glob("sql/*.sql")}
    assert files - rooms(engine) == {"catalogue"}  # what `context` knows of lanes and settings


HELPERS = {
    "apply": "the engine's part of `settle`",
    "catalogue": "what `context` knows of lanes, controls and settings",
    "common": "the beginning of every script",
    "count": "`settle` counts late results after it has judged them",
    "find_newest": "`find` where every task can match",
    "find_small": "`find` where few tasks can match",
    "migrate_due": "a step of `migrate`",
    "migrate_lanes": "a step of `migrate`",
    "open_lanes": "`submit` opens lanes for new types",
    "read_heads": "`find` looks at many tasks",
    "remove_lanes": "the engine's part of `drop_lanes`",
    "set_controls": "`pause` and `limit`",
    "set_timeouts": "`claim` gives tasks the timeout of their type",
    "set_worker_status": "`mark`",
    "submit_along": "`fire_due` and its like store tasks and schedules in one step",
    "write_settings": "the engine's part of `change_settings`",
}


def test_a_script_is_named_after_its_operation() -> None:
    names = {path.stem for path in ENGINES.glob("redis/lua/*.lua")}
    operations = {name for name in dir(Operations) if not name.startswith("_")}
    documents = {name for name in names if name.endswith(("_document", "_documents"))}
    assert names - operations - documents == HELPERS.keys()
