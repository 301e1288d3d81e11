"""Tasks end: whoever ends them has looked at their rows in the same transaction."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairlane.core.flow import Flow
from fairlane.core.machine import Verb
from fairlane.core.model import TaskError
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.driver import Execute
from fairlane.engines.sqlite.ledger import Ledger

SQL = statements(__package__, "settle")


class Standing(NamedTuple):
    """A task's row as far as a transition needs it."""

    rowid: int
    task_id: str
    attempt: int
    lane: int
    level: int
    state: int
    worker_id: str | None
    started_at: int | None


class End(msgspec.Struct, frozen=True):
    """How a task ends. `outcome` tells of the run that ends with it, if one does."""

    verb: Verb
    state: State
    reason: str = ""
    error: TaskError | None = None
    outcome: str | None = None
    retry_count: int | None = None
    returns: int | None = None
    started_at: int | None = None
    seconds: float | None = None
    linger: bool = False


def end(task: Standing, how: End, now: int, ledger: Ledger) -> Flow[None]:
    """End one task other than by completion."""
    error = encoded(how.error)
    started_at = task.started_at if how.started_at is None else how.started_at
    yield Execute(
        SQL["end"],
        (how.state.code, started_at, now, how.retry_count, how.returns, error, task.rowid),
    )
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
    task: Standing, started_at: int | None, now: int, outcome: str, error: bytes | None
) -> Flow[None]:
    """A run that did not complete goes into the task's history."""
    fence = (task.task_id, task.attempt, task.worker_id)
    yield Execute(SQL["record_attempt"], (*fence, started_at, now, outcome, error))


def linger(task: Standing) -> Flow[None]:
    """The task moves on while its worker still runs it: the slot stays taken."""
    yield Execute(SQL["linger"], (task.worker_id, task.task_id, task.attempt, task.lane))


def encoded(error: TaskError | None) -> bytes | None:
    """An error as it is stored."""
    return None if error is None else msgspec.json.encode(error)
