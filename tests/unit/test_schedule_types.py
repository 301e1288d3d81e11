"""Schedules of types that nobody handles: refused, with what to do about it."""

from __future__ import annotations

import pytest

from fairlane.core import limits, scheduling
from fairlane.core.definitions import Definition, publish
from fairlane.core.errors import ScheduleConflict, UnknownType
from fairlane.core.model import WorkerStatus
from fairlane.core.recurrence import every
from fairlane.core.schedules import NewSchedule, new_schedule
from fairlane.core.scheduling import KIND
from fairlane.core.scheduling.types import BUILT_IN
from fairlane.core.submission import new_task
from tests.unit.make import SECOND, worker
from tests.unit.shelf import Shelf


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def of_type(type: str, schedule_id: str = "hourly", note: str = "") -> NewSchedule:
    return new_schedule(schedule_id, every(3600), new_task(type), note=note)


def put(shelf: Shelf, *new: NewSchedule, allow: bool = False, owner: str | None = None) -> None:
    op = scheduling.put_schedules(shelf, new, owner=owner, allow_unknown_type=allow)
    shelf.run(op)


def publish_types(shelf: Shelf, *types: str) -> None:
    shelf.run(publish(shelf, [Definition(type=each) for each in types]))


def refusal(shelf: Shelf, *new: NewSchedule) -> str:
    before = dict(shelf.of(KIND))
    with pytest.raises(UnknownType) as caught:
        put(shelf, *new)
    assert shelf.of(KIND) == before
    return str(caught.value)


def test_a_type_that_nobody_handles_is_refused_with_what_to_do(shelf: Shelf) -> None:
    shelf.workers = [worker(types=frozenset({"work"}))]
    assert refusal(shelf, of_type("zzz")) == (
        "No worker has published the task type zzz, and none that runs handles it. Start a worker "
        "that has it. If its workers come later, allow the type: allow_unknown_type, or "
        "--allow-unknown-type."
    )


def test_similar_names_are_named(shelf: Shelf) -> None:
    publish_types(shelf, "mail.send", "report")
    shelf.workers = [worker(types=frozenset({"mail.sent"}))]
    assert "Did you mean report? Otherwise start" in refusal(shelf, of_type("repotr"))
    assert "Did you mean mail.sent or mail.send?" in refusal(shelf, of_type("mail.sentt"))
    assert "Did you mean webhook?" in refusal(shelf, of_type("webhok"))
    with pytest.raises(UnknownType) as caught:
        put(shelf, of_type("mail.sentt"))
    assert caught.value.similar == ("mail.sent", "mail.send")


def test_one_unknown_type_refuses_the_whole_batch(shelf: Shelf) -> None:
    publish_types(shelf, "work")
    assert "zzz" in refusal(shelf, of_type("work", "a"), of_type("zzz", "b"))
    assert shelf.of(KIND) == {}


def test_what_somebody_handles_is_stored(shelf: Shelf) -> None:
    publish_types(shelf, "published")
    shelf.workers = [worker(types=frozenset({"handled"}))]
    for type in ("published", "handled", *sorted(BUILT_IN)):
        put(shelf, of_type(type, schedule_id=type))
    assert len(shelf.of(KIND)) == 2 + len(BUILT_IN)
    shelf.workers = [worker(types=None)]  # takes all types
    put(shelf, of_type("anything", "any"))
    assert "any" in shelf.of(KIND)


def test_workers_that_are_gone_and_old_definitions_do_not_count(shelf: Shelf) -> None:
    publish_types(shelf, "old")
    shelf.now += int(limits.DEFINITION_SECONDS + 1) * SECOND
    types = frozenset({"old"})
    shelf.workers = [worker(types=types, status=WorkerStatus.DEAD), worker(types=None, lost=True)]
    assert "Did you mean" not in refusal(shelf, of_type("old"))


def test_only_a_type_that_is_new_is_looked_at(shelf: Shelf) -> None:
    """So that a schedule can be changed although its workers have been away for a month."""
    put(shelf, of_type("work"), allow=True)
    put(shelf, of_type("work", note="changed"))
    assert "other" in refusal(shelf, of_type("other"))


def test_code_has_the_types_that_it_declares(shelf: Shelf) -> None:
    put(shelf, of_type("work"), owner="shop")
    assert "hourly" in shelf.of(KIND)


def test_what_cannot_be_changed_at_all_comes_first(shelf: Shelf) -> None:
    put(shelf, of_type("work"), owner="shop")
    with pytest.raises(ScheduleConflict):
        put(shelf, of_type("zzz"))
