"""The conformance tests of workflows catch faults in records, policies and the task at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import settlement, workflow_records, workflow_watch, workflows
from fairlane.core.documents import Document, write
from fairlane.core.errors import FairlaneError
from fairlane.core.flow import Flow, writes
from fairlane.core.model import NewTask
from fairlane.core.workflow_records import Record
from tests.conformance import test_workflow_policies as policies
from tests.conformance import test_workflow_records as records
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.mutants.faults_schedules import SUBMIT_ALONG, everywhere
from tests.mutants.planting import Break, replaced

Check = Callable[[World], Any]


def _without_tasks(
    self: Any, _: Sequence[NewTask], kind: str, puts: Sequence[Document], __: Any = ()
) -> Flow[Any]:
    return (yield from SUBMIT_ALONG[type(self)](self, [], kind, puts))


def _without_record(
    self: Any, tasks: Sequence[NewTask], _: str, __: Sequence[Document], ___: Any = ()
) -> Flow[Any]:
    return (yield from self.submit(tasks).flow())


def _in_two_steps(
    self: Any, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document], _: Any = ()
) -> Flow[Any]:
    yield from self.write_documents(kind, puts)
    return (yield from self.submit(tasks).flow())


def _keeps_watching(self: Any, kind: str, puts: Any, drops: Any = (), **_: Any) -> Flow[Any]:
    return (yield from write(self, kind, puts))


def _cancels_nothing(*_: Any) -> Flow[list[Any]]:
    yield from ()
    return []


def _all_nodes(nodes: Any) -> Any:
    return _unforgiven([replace(node, on_exit=False) for node in nodes])


_unforgiven = workflows.unforgiven


async def _replayed(store: World) -> None:
    """An end that was noted before is found again."""
    worker = await store.worker()
    await records.submit(store, [[]])
    await records.run_all(store, worker, 1)
    await store.advance(60)
    watch, _ = await records.stored(store)
    await records.watched(store)

    def again(self: Any) -> Flow[Any]:
        return (yield from write(self, workflow_records.KIND, [replace(watch, version=0)]))

    await store.run(writes(again)(store.ops))
    await records.watched(store)
    assert sum((await records.ends(store)).values()) == 1


FAULTS: dict[str, tuple[Break, Check]] = {
    "a record without tasks": (
        everywhere(_without_tasks),
        records.test_a_workflow_is_recorded_with_its_tasks,
    ),
    "tasks without a record": (
        everywhere(_without_record),
        records.test_a_workflow_is_recorded_with_its_tasks,
    ),
    "an end is counted twice": (
        replaced(Record, "is_open", property(lambda _: True)),
        _replayed,
    ),
    "what has ended is looked at for ever": (
        replaced(workflow_watch, "write", _keeps_watching),
        lambda store: records.test_an_end_is_noticed_once(store, "completed"),
    ),
    "a record is kept for ever": (
        replaced(
            workflow_watch,
            "document_of",
            lambda *args: workflow_records.document_of(*args[:4]),
        ),
        records.test_it_is_remembered_for_as_long_as_failed_tasks,
    ),
    "a failure cancels nothing at once": (
        replaced(settlement, "cancel_all", _cancels_nothing),
        policies.test_a_failure_cancels_the_rest,
    ),
    "an expiry cancels nothing": (
        replaced(workflow_watch, "cancel_all", _cancels_nothing),
        lambda store: policies.test_other_ends_cancel_the_rest_soon(store, "expired"),
    ),
    "the task at the end forgives all": (
        replaced(workflows, "unforgiven", _all_nodes),
        policies.test_it_forgives_nothing,
    ),
}


@pytest.mark.parametrize("kind", ["sqlite-memory", "postgres-newest", "redis"])
@pytest.mark.parametrize("name", FAULTS)
async def test_the_suite_catches(
    kind: str, name: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it, check = FAULTS[name]
    async with opened(kind, servers, tmp_path) as store:
        with monkeypatch.context() as patch:
            break_it(patch)
            with pytest.raises((AssertionError, FairlaneError, ValueError, LookupError)):
                await check(store)


@pytest.mark.parametrize("kind", ["postgres-newest", "redis"])
async def test_a_record_and_tasks_in_two_steps(
    kind: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(kind, servers, tmp_path) as store:
        with monkeypatch.context() as patch:
            everywhere(_in_two_steps)(patch)
            with pytest.raises(AssertionError):
                await records.test_who_submits_dies(store)


@pytest.mark.parametrize("name", FAULTS)
async def test_the_suite_objects_to_nothing_else(
    name: str, servers: Servers, tmp_path: Path
) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as store:
        await FAULTS[name][1](store)
