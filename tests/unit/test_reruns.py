"""Reruns: which tasks run again, and which of them wait for parents."""

from __future__ import annotations

import pytest

from fairlane.core.machine import BIND_AGAIN, FROM_START, Move
from fairlane.core.reruns import Rerun, move_of
from fairlane.core.states import TERMINAL, State
from tests.unit.make import TASK_ID, stored, task_id

DONE, FAILED, LIVE = State.COMPLETED, State.FAILED, State.QUEUED
STRICT = Rerun(TASK_ID, 4)
TOLERANT = Rerun(TASK_ID, 4, tolerant=True)


def test_it_is_planned_from_a_task() -> None:
    task = stored(task_id=TASK_ID, version=4, depends_on=(task_id(9),), tolerant=True)
    assert Rerun.of(task) == Rerun(TASK_ID, 4, (task_id(9),), tolerant=True)


@pytest.mark.parametrize(
    ("rerun", "parents", "move"),
    [
        (STRICT, [], FROM_START),
        (STRICT, [DONE, DONE], FROM_START),
        (STRICT, [DONE, LIVE], BIND_AGAIN),
        (STRICT, [LIVE, FAILED], None),
        (STRICT, [None], None),
        (TOLERANT, [FAILED, None], FROM_START),
        (TOLERANT, [FAILED, LIVE], BIND_AGAIN),
    ],
)
def test_it_goes_by_the_parents(
    rerun: Rerun, parents: list[State | None], move: Move | None
) -> None:
    assert move_of(rerun, FAILED, 4, parents) is move


@pytest.mark.parametrize("state", list(State))
def test_only_what_has_ended_runs_again(state: State) -> None:
    assert move_of(STRICT, state, 4, []) is (FROM_START if state in TERMINAL else None)


def test_a_task_that_has_moved_stays_as_it_is() -> None:
    assert move_of(STRICT, FAILED, 5, []) is None
