"""The last runs of a schedule: in its own document, and in the one beside it."""

from __future__ import annotations

import pytest

from fairlane.core import limits, schedule_history, scheduling
from fairlane.core.documents import Document
from fairlane.core.recurrence import every
from fairlane.core.schedules import Outcome, new_schedule
from fairlane.core.submission import new_task
from tests.unit.make import SECOND
from tests.unit.shelf import Shelf

NAME = "daily"


@pytest.fixture
def shelf() -> Shelf:
    """A store with a schedule that fires every minute."""
    shelf = Shelf()
    new = new_schedule(NAME, every(60), new_task("work"), overlap="allow")
    shelf.run(scheduling.put_schedules(shelf, [new]))
    return shelf


def fire(shelf: Shelf, times: int) -> None:
    for _ in range(times):
        shelf.now += 60 * SECOND
        handled = shelf.run(scheduling.fire_due(shelf)).handled
        assert [run.outcome for _, run in handled] == [Outcome.FIRED]


def ticks(shelf: Shelf) -> list[int]:
    (found,) = shelf.run(scheduling.schedules(shelf, [NAME]))
    assert found is not None
    return [run.tick for run in found.standing.runs]


def own_ticks(shelf: Shelf) -> int:
    """How many runs the schedule's own document has."""
    return shelf.of(scheduling.KIND)[NAME].value.count(b'"fired",')


def beside(shelf: Shelf) -> Document | None:
    return shelf.of(schedule_history.KIND).get(NAME)


def test_few_runs_are_in_the_document_of_the_schedule(shelf: Shelf) -> None:
    fire(shelf, 5)
    assert beside(shelf) is None
    assert len(ticks(shelf)) == 5


def test_many_runs_move_and_are_read_together(shelf: Shelf) -> None:
    fire(shelf, 30)
    assert beside(shelf) is not None
    assert own_ticks(shelf) < 20
    found = ticks(shelf)
    assert len(found) == 30
    assert found == sorted(set(found))


def test_the_newest_hundred_are_kept(shelf: Shelf) -> None:
    fire(shelf, 130)
    found = ticks(shelf)
    assert len(found) == limits.SCHEDULE_RUNS
    assert found[-1] == shelf.now // (60 * SECOND) * 60 * SECOND
    assert found[-1] - found[0] == (limits.SCHEDULE_RUNS - 1) * 60 * SECOND


def test_a_process_that_died_while_they_moved_leaves_none_twice(shelf: Shelf) -> None:
    fire(shelf, 19)
    before = shelf.of(scheduling.KIND)[NAME]
    fire(shelf, 1)
    assert beside(shelf) is not None
    shelf.of(scheduling.KIND)[NAME] = before  # as it was before they moved
    assert len(ticks(shelf)) == 19


def test_runs_that_cannot_be_read_are_none(shelf: Shelf) -> None:
    fire(shelf, 30)
    stored = beside(shelf)
    assert stored is not None
    newest = own_ticks(shelf)
    shelf.of(schedule_history.KIND)[NAME] = Document(NAME, b"{", stored.at, version=stored.version)
    assert len(ticks(shelf)) == newest
    fire(shelf, 20)
    assert len(ticks(shelf)) == newest + 20


def test_they_go_with_the_schedule(shelf: Shelf) -> None:
    fire(shelf, 30)
    assert shelf.run(scheduling.drop_schedule(shelf, NAME))
    assert beside(shelf) is None
