"""The conformance tests of schedules catch every fault in how they are declared and fired.

Each fault stands beside the test that shows it, on every engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.documents import Document, Written
from fairlane.core.errors import FairlaneError
from fairlane.core.flow import Flow
from fairlane.core.model import NewTask
from fairlane.core.schedules import Overlap
from fairlane.engines.postgres import documents as postgres_documents
from fairlane.engines.postgres import submit as postgres
from fairlane.engines.postgres.engine import PostgresOperations
from fairlane.engines.sqlite import submit as sqlite
from tests.conformance import test_schedule_faults as faults
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.mutants.faults_schedules import (
    CORE,
    ENGINES,
    OVERLAP,
    SUBMIT_ALONG,
    TICK,
    Check,
    Fault,
    everywhere,
    shown,
)
from tests.mutants.planting import Break, lua, replaced, together


def _overwrites(
    self: Any, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document], *more: Any
) -> Flow[Any]:
    _, found = yield from self.read_documents(kind, [put.id for put in puts])
    versions = [0 if each is None else each.version for each in found]
    latest = [replace(put, version=each) for put, each in zip(puts, versions, strict=True)]
    return (yield from SUBMIT_ALONG[type(self)](self, tasks, kind, latest, *more))


def _first_the_document(
    self: Any, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document], _: Any = ()
) -> Flow[Any]:
    written = yield from self.write_documents(kind, puts)
    if written is Written.DONE and tasks:
        yield from self.submit(tasks).flow()
    return [] if written is Written.DONE else None


def _first_the_tasks(
    self: Any, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document], _: Any = ()
) -> Flow[Any]:
    if tasks:
        yield from self.submit(tasks).flow()
    written = yield from self.write_documents(kind, puts)
    return [] if written is Written.DONE else None


def _first_cancels(
    self: Any,
    tasks: Sequence[NewTask],
    kind: str,
    puts: Sequence[Document],
    cancels: Sequence[str] = (),
) -> Flow[Any]:
    if cancels:
        yield from self.cancel(cancels).flow()
    return (yield from SUBMIT_ALONG[type(self)](self, tasks, kind, puts))


OVERTAKEN: dict[str, Fault] = {
    "a task is cancelled before another replaces it": (
        everywhere(_first_cancels),
        shown(faults.test_a_task_that_was_not_replaced_goes_on, "pause"),
    ),
    "a version is not compared": (
        everywhere(_overwrites),
        shown(faults.test_it_is_paused_while_it_is_fired),
    ),
}
"""Where others write while an operation is under way."""

DIES = shown(faults.test_who_fires_dies, "allow")
ANOTHER = shown(faults.test_another_process_fires_it_first)


def _whatever(self: Any, kind: str, puts: Any) -> Any:
    yield from _write_postgres(self, kind, puts)
    return Written.DONE


_write_postgres = postgres_documents.write_documents


def _goes_on_inside(
    self: Any, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document], _: Any = ()
) -> Flow[Any]:
    """Without the rollback of what was refused."""
    if not tasks:
        yield from _write_postgres(self, kind, puts)
        return []
    along = postgres.Along(partial(_write_postgres, self, kind, puts))
    answers, _ = yield from postgres._submit_carefully(self, tasks, plain=False, along=along)
    return answers


def _takes_two_transactions(break_it: Any) -> Break:
    return together(*(replaced(engine, "submit_along", break_it) for engine in ENGINES[1:]))


SQLITE: dict[str, Fault] = {
    "no document is written": (
        replaced(sqlite, "write_documents", lambda *_: _nothing_written()),
        TICK,
    ),
}


def _cancels_nothing(_: Any) -> Flow[bool]:
    yield from ()
    return False


def _nothing_written() -> Flow[Any]:
    yield from ()
    return Written.DONE


POSTGRES: dict[str, Fault] = {
    **OVERTAKEN,
    "the document is written first": (_takes_two_transactions(_first_the_document), DIES),
    "the tasks are stored first": (_takes_two_transactions(_first_the_tasks), DIES),
    "who is overtaken stores its tasks": (
        replaced(postgres, "write_documents", _whatever),
        ANOTHER,
    ),
    "what is replaced goes on there": (
        replaced(postgres, "_cancel", _cancels_nothing),
        OVERLAP[Overlap.REPLACE],
    ),
    "a transaction goes on after a refusal": (
        replaced(PostgresOperations, "submit_along", _goes_on_inside),
        shown(faults.test_the_task_to_wait_for_is_deleted_while_it_is_fired),
    ),
}

REDIS: dict[str, Fault] = {
    **OVERTAKEN,
    "the document is written first": (_takes_two_transactions(_first_the_document), DIES),
    "the tasks are stored first": (_takes_two_transactions(_first_the_tasks), DIES),
    "who is overtaken stores its tasks": (
        lua("lib/submission", "if prepared ~= 'done' then", "if false then"),
        ANOTHER,
    ),
    "what is replaced goes on there": (
        lua("lib/submission", "leads_from(MOVE_CANCEL, record)", "false"),
        OVERLAP[Overlap.REPLACE],
    ),
    "what has ended is cancelled there": (
        lua("lib/submission", "if record and leads_from(MOVE_CANCEL, record)", "if record"),
        shown(faults.test_a_task_that_ended_while_it_was_replaced_stays_as_it_is),
    ),
    "no document is written": (
        lua("lib/submission", "if ARGV[10] == '1' then", "if false then"),
        TICK,
    ),
    "a version is not compared there": (
        lua("lib/document_writes", "~= version then", "== '' then"),
        ANOTHER,
    ),
}

PLANTED = [
    pytest.param(kind, *fault, id=f"{kind}: {name}")
    for kind, own in (
        ("sqlite-memory", SQLITE),
        ("postgres-newest", POSTGRES),
        ("redis", REDIS),
        ("valkey", REDIS),
    )
    for name, fault in (CORE | own).items()
]


CAUGHT = (AssertionError, pytest.fail.Exception, FairlaneError, ValueError, LookupError)
"""The last two: a test unpacks what is not there, or the fault itself finds nothing."""


@pytest.mark.parametrize(("kind", "break_it", "check"), PLANTED)
async def test_the_suite_catches(
    kind: str,
    break_it: Break,
    check: Check,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(kind, servers, tmp_path) as store:
        with monkeypatch.context() as patch:
            break_it(patch)
            with pytest.raises(CAUGHT):
                await check(store, patch)


@pytest.mark.parametrize("name", {check: name for name, (_, check) in CORE.items()}.values())
async def test_the_suite_objects_to_nothing_else(
    name: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as store:
        await CORE[name][1](store, monkeypatch)
