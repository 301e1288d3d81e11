"""How a task leaves one state and enters another, one at a time.

Whoever moves a task has read its row in the same transaction. The hot path has statements of its
own for whole batches: see claim.py and settle.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairlane.core.flow import Flow
from fairlane.core.machine import Verb, allows
from fairlane.core.model import TaskError
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.ledger import Ledger

SQL = statements(__package__, "moves")

_SCHEDULED, _QUEUED, _EXECUTING, _RETRYING = (
    State.SCHEDULED.code,
    State.QUEUED.code,
    State.EXECUTING.code,
    State.RETRYING.code,
)


class TaskRow(NamedTuple):
    """A task's row as far as a transition needs it. By default one that is just being submitted."""

    number: int
    task_id: str
    lane: int
    level: int
    ready_at: int
    state: int = State.SCHEDULED.code
    attempt: int = 0
    retry_count: int = 0
    version: int = 1
    worker_id: str | None = None
    claimed_at: int | None = None
    started_at: int | None = None


class End(msgspec.Struct, frozen=True):
    """How a task ends. `outcome` tells of the run that ends with it, if one does."""

    verb: Verb
    state: State
    reason: str = ""
    error: TaskError | None = None
    outcome: str | None = None
    retry_count: int | None = None
    started_at: int | None = None
    seconds: float | None = None
    linger: bool = False


def applies(verb: Verb, state: State, among: frozenset[State] | None) -> bool:
    """Whether a task in this state may undergo a verb that is meant for those in `among`."""
    return allows(verb, state) and (among is None or state in among)


def standing(task_ids: Sequence[str]) -> Flow[list[TaskRow]]:
    """The tasks with these ids, as they stand."""
    rows = yield Execute(SQL["standing"], (json.dumps(list(task_ids)),))
    return [TaskRow._make(row) for row in rows]


def standing_by_number(number: int) -> Flow[TaskRow | None]:
    """The task with this number, as it stands."""
    row = (yield Execute(SQL["standing_by_number"], (number,))).fetchone()
    return None if row is None else TaskRow._make(row)


def leave(task: TaskRow) -> Flow[None]:
    """Take the task out of the state it is in."""
    if task.state == _QUEUED:
        yield Execute(SQL["leave_ready"], (task.lane, task.level, task.ready_at, task.task_id))
    elif task.state == _EXECUTING:
        yield Execute(SQL["leave_held"], (task.task_id,))
    elif task.state in {_SCHEDULED, _RETRYING}:
        yield Execute(SQL["leave_waiting"], (task.number,))
    else:
        yield Execute(SQL["leave_outcome"], (task.number,))


def enter_ready(
    task: TaskRow, now: int, *, level: int, ready_at: int, retry_count: int
) -> Flow[None]:
    """Queue the task, at the place that level and ready_at give it."""
    if (level, ready_at) != (task.level, task.ready_at):
        yield Execute(SQL["note_place"], (level, ready_at, task.number))
    counters = (task.number, task.attempt, retry_count, task.version + 1, now)
    yield Execute(SQL["enter_ready"], (task.lane, level, ready_at, task.task_id, *counters))


def enter_waiting(
    task: TaskRow, now: int, *, state: State, due_at: int, retry_count: int
) -> Flow[None]:
    """Let the task wait until it is due."""
    counters = (task.number, task.attempt, retry_count, task.version + 1, now)
    yield Execute(SQL["enter_waiting"], (*counters, state.code, due_at, task.task_id))


def end(task: TaskRow, how: End, now: int, ledger: Ledger) -> Flow[None]:
    """End the task, other than by completion. `ends.see_to` does what follows from it."""
    started_at = task.started_at if how.started_at is None else how.started_at
    error = encoded(how.error)
    retry_count = task.retry_count if how.retry_count is None else how.retry_count
    yield from leave(task)
    yield Execute(
        SQL["enter_outcome"],
        (
            task.number,
            task.attempt,
            retry_count,
            task.version + 1,
            how.state.code,
            task.worker_id,
            task.claimed_at,
            started_at,
            now,
            task.task_id,
        ),
    )
    ledger.ends(how.state, [task.task_id])
    if error is not None or task.attempt:  # that of an earlier run is told by its attempt
        yield Execute(SQL["note_error"], (error, task.number))
    ledger.add(
        how.verb,
        task.task_id,
        task.lane,
        task.level,
        task.attempt,
        task.state,
        how.state.code,
        worker_id=task.worker_id,
        label=how.reason,
        seconds=how.seconds,
    )
    if how.outcome is not None:
        yield from record_attempt(task, started_at, now, how.outcome, error)
    if how.linger:
        yield from linger(task)


def record_attempt(
    task: TaskRow, started_at: int | None, now: int, outcome: str, error: bytes | None
) -> Flow[None]:
    """A run that did not complete goes into the task's history."""
    fence = (task.task_id, task.attempt, task.worker_id)
    yield Execute(SQL["record_attempt"], (*fence, started_at, now, outcome, error))


def linger(task: TaskRow) -> Flow[None]:
    """The task moves on while its worker still runs it: the slot stays taken."""
    yield Execute(SQL["linger"], (task.worker_id, task.task_id, task.attempt, task.lane))


def encoded(error: TaskError | None) -> bytes | None:
    """An error as it is stored."""
    return None if error is None else msgspec.json.encode(error)
