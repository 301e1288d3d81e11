"""How a task came to be as it is: derived from what is stored of it, not stored twice.

Steps that leave no trace are missing: when a retry became due, when a dead letter was replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from fairlane.core.machine import (
    NOT_RETRIABLE,
    NOT_STARTED,
    RETRIES_EXHAUSTED,
    TIMED_OUT,
    WORKER_LOST,
)
from fairlane.core.model import Attempt, Task
from fairlane.core.states import TERMINAL, State


class Step(msgspec.Struct, frozen=True):
    """A state that a task entered."""

    state: State
    at: datetime
    worker_id: str | None = None
    attempt: int | None = None
    reason: str | None = None


def history_of(task: Task) -> list[Step]:
    """Return the states that a task went through, oldest first."""
    steps = [*_beginning(task)]
    for run in task.attempts:
        steps += _run(run)
    steps += _present(task, steps[-1])
    return _in_order(steps)


def _in_order(steps: list[Step]) -> list[Step]:
    """Return the steps with times that never go back: a run's start is its worker's word."""
    at = steps[0].at
    ordered = []
    for step in steps:
        at = max(at, step.at)
        ordered.append(msgspec.structs.replace(step, at=at))
    return ordered


def _beginning(task: Task) -> Iterator[Step]:
    if not task.depends_on and task.run_at <= task.created_at:
        yield Step(State.QUEUED, task.created_at)
        return
    yield Step(State.SCHEDULED, task.created_at)
    first = _first_run(task)
    # A snooze or a replay has made it ready once more: then the first time is its due time, if any.
    for ready in (task.ready_at, task.run_at):
        if first is not None and task.created_at < ready <= first:
            yield Step(State.QUEUED, ready)
            return


def _first_run(task: Task) -> datetime | None:
    begun = [run.started_at for run in task.attempts if run.started_at is not None]
    return begun[0] if begun else task.claimed_at


def _run(run: Attempt) -> Iterator[Step]:
    if run.started_at is not None:
        yield Step(State.EXECUTING, run.started_at, run.worker_id, run.number)
    why = None if run.error is None else run.error.reason
    end = _ENDS.get(why or "")
    if end is None:
        end = _AFTER.get(run.outcome, State.QUEUED)
        why = None if end in TERMINAL else run.outcome
    yield Step(end, run.ended_at, run.worker_id, run.number, why)


_ENDS: Final = {
    NOT_RETRIABLE: State.FAILED,
    RETRIES_EXHAUSTED: State.DEAD_LETTER,
    TIMED_OUT: State.DEAD_LETTER,
    WORKER_LOST: State.DEAD_LETTER,
    NOT_STARTED: State.DEAD_LETTER,
}
_AFTER: Final = {
    "completed": State.COMPLETED,
    "cancelled": State.CANCELLED,
    "snoozed": State.SCHEDULED,
    "failed": State.RETRYING,
    "timed_out": State.RETRYING,
}


def _present(task: Task, last: Step) -> Iterator[Step]:
    """Return what happened since the last run ended."""
    if task.state is State.EXECUTING:
        since = task.claimed_at or task.updated_at
        yield Step(task.state, since, task.worker_id, task.attempt)
    elif task.state in TERMINAL:
        ended = task.completed_at or task.updated_at
        if last.state is not task.state or last.at < ended:
            yield Step(task.state, ended, reason=None if task.error is None else task.error.reason)
    elif last.state is not task.state:
        yield Step(task.state, task.updated_at)
