"""Conversions between rows of the database and structs of the core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

import msgspec

from fairlane.core.errors import InvalidTaskId
from fairlane.core.journal import Passage
from fairlane.core.lanes import Lane
from fairlane.core.model import Attempt, Progress, Task, Worker, moment
from fairlane.core.priority import Aging
from fairlane.core.records import TaskRecord, WorkerRecord, attempt_of

Row = tuple[Any, ...]


def array(values: Iterable[object]) -> str:
    """Return numbers as an array literal: drivers take many times longer to send a list."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_ids(task_ids: Sequence[str]) -> str:
    """Return ids as an array literal."""
    literal = "{" + ",".join(task_ids) + "}"
    if task_ids and literal.count(",") != len(task_ids) - 1:
        raise InvalidTaskId  # an id with a comma would become two
    return literal


def array_of_bounds(values: Sequence[bytes]) -> str:
    """Return the positions where joined values end, as an array literal with 0 at index 0."""
    ends = ",".join(map(str, accumulate(map(len, values))))
    return f"[0:{len(values)}]={{0,{ends}}}"


_COLUMNS = len(TaskRecord.__struct_fields__)


class Header(NamedTuple):
    """The worker and the store, as a claim found them."""

    status: str | None
    request_id: str | None
    claimed_at: int | None
    version: int
    now: int
    due_at: int | None
    expires_at: int | None
    left_over: int

    @classmethod
    def of(cls, reply: Sequence[Row]) -> Self:
        """Return the header of a claim's reply: the row with place 0."""
        status, request_id, numbers = next(tuple(row)[13:] for row in reply if row[0] == 0)
        return cls(status, request_id, *numbers)

    @property
    def due(self) -> bool:
        """Return whether some tasks are due."""
        return self.due_at is not None and self.due_at <= self.now

    @property
    def expired(self) -> bool:
        """Return whether some tasks have expired."""
        return self.expires_at is not None and self.expires_at <= self.now

    @property
    def has_chores(self) -> bool:
        """Return whether tasks are due or expired, or dependents are left over."""
        return self.due or self.expired or bool(self.left_over)


def task_of(row: Row, lane: Lane, aging: Aging) -> Task:
    """Return the task of a row, with its runs."""
    now, _, _, progress, progress_at, *columns = row
    record, runs = columns[:_COLUMNS], columns[_COLUMNS:]
    shown = progress_of(progress, progress_at)
    return TaskRecord(*record).task(lane, _attempts_of(runs), shown, aging, now)


def _attempts_of(columns: list[list[Any] | None]) -> list[Attempt]:
    """Return the runs in the arrays of a task's row; the arrays are null if there are none."""
    if columns[0] is None:
        return []
    return [attempt_of(*run) for run in zip(*columns, strict=True)]


def stored_progress(percent: float | None, message: str | None) -> bytes:
    """Return progress as it is stored."""
    return msgspec.json.encode((percent, message))


def progress_of(stored: bytes | None, at: int) -> Progress | None:
    """Return the progress that `stored_progress` encoded."""
    if stored is None:
        return None
    percent, message = msgspec.json.decode(stored)
    return Progress(percent, message, moment(at))


def worker_of(row: Row, task_ids: Sequence[str]) -> Worker:
    """Return the worker of a row, with the tasks it holds."""
    now, *record = row
    return WorkerRecord(*record).worker(task_ids, now)


def passage_of(row: Row) -> tuple[int, Passage]:
    """Return the time and the passage of a journal row."""
    _, _, at, verb, worker_id, lane, level, task_ids, attempts, seconds = row
    return (
        at,
        Passage(
            verb,
            worker_id,
            lane or 0,
            level or 0,
            [str(task_id) for task_id in task_ids or ()],
            attempts or (),
            seconds or (),
        ),
    )
