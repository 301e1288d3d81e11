"""Moves that end tasks without a run that ended: cancel, doom, replace.

Moves that follow from runs are in apply.py, replays in control.py, expiries and tasks that are due
in claim.py: each is one statement that finds its tasks itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairlane.core.flow import Flow
from fairlane.core.machine import Move, Slot, sources_of
from fairlane.core.records import stored_error
from fairlane.core.states import State
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("moves")


class Ended(NamedTuple):
    """A task that has ended, and that was linked or bound. `bound`: it waited for its parents."""

    task_id: str
    state: State
    bound: bool = False


class Found(NamedTuple):
    """A task that was to be ended. `state` is its state before, `after` that of the move."""

    task_id: str
    after: State
    applied: bool
    state: State
    worker_id: str | None
    linked: bool
    bound: bool


def ended_of(found: Iterable[Found]) -> list[Ended]:
    """Return the tasks that ended and are linked or bound: see `dependents`."""
    return [
        Ended(task.task_id, task.after, task.bound) for task in found if task.linked or task.bound
    ]


def end(task_ids: Iterable[str], among: frozenset[State], move: Move) -> Flow[list[Found]]:
    """End those of these tasks that are in the given states. The caller releases dependents."""
    assert among <= sources_of(move.verb), (among, move)
    rows = yield Query(
        SQL["end"],
        (
            array_of_ids(list(task_ids)),
            [state.code for state in among],
            move.label,
            stored_error(move.error),
            move.verb.value,
            move.state.code,
            move.run,
            move.slot is Slot.LINGER,
        ),
    )
    found = {}
    for applied, task_id, state, *rest in rows:
        if applied or task_id not in found:
            found[task_id] = Found(task_id, move.state, applied, State.of(state), *rest)
    return list(found.values())
