"""Stored rows become structs."""

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
    """Numbers as the literal of an array: drivers take many times longer to send a list."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_ids(task_ids: Sequence[str]) -> str:
    """Ids as the literal of an array."""
    literal = "{" + ",".join(task_ids) + "}"
    if task_ids and literal.count(",") != len(task_ids) - 1:
        raise InvalidTaskId  # or everything behind it would be taken for something else
    return literal


def array_of_bounds(values: Sequence[bytes]) -> str:
    """Where values end that are sent as one: the literal of an array that begins with [0] = 0."""
    ends = ",".join(map(str, accumulate(map(len, values))))
    return f"[0:{len(values)}]={{0,{ends}}}"


_COLUMNS = len(TaskRecord.__struct_fields__)


class Header(NamedTuple):
    """How a claim found the worker and the store."""

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
        """Out of a claim's reply: the row that has no place among the tasks."""
        status, request_id, numbers = next(tuple(row)[13:] for row in reply if row[0] == 0)
        return cls(status, request_id, *numbers)

    @property
    def due(self) -> bool:
        """Whether the time of some tasks has come."""
        return self.due_at is not None and self.due_at <= self.now

    @property
    def expired(self) -> bool:
        """Whether the time of some tasks is over."""
        return self.expires_at is not None and self.expires_at <= self.now

    @property
    def untidy(self) -> bool:
        """Whether there is something that nobody has seen to: these two, or what ends left over."""
        return self.due or self.expired or bool(self.left_over)


def task_of(row: Row, lane: Lane, aging: Aging) -> Task:
    """A task out of its row, with its runs."""
    now, _, progress, progress_at, *columns = row
    record, runs = columns[:_COLUMNS], columns[_COLUMNS:]
    shown = progress_of(progress, progress_at)
    return TaskRecord(*record).task(lane, _attempts_of(runs), shown, aging, now)


def _attempts_of(columns: list[list[Any] | None]) -> list[Attempt]:
    """Runs out of the arrays of a task's row; they are null when there are none."""
    if columns[0] is None:
        return []
    return [attempt_of(*run) for run in zip(*columns, strict=True)]


def stored_progress(percent: float | None, message: str | None) -> bytes:
    """Progress as it is stored."""
    return msgspec.json.encode((percent, message))


def progress_of(stored: bytes | None, at: int) -> Progress | None:
    """What `stored_progress` was given."""
    if stored is None:
        return None
    percent, message = msgspec.json.decode(stored)
    return Progress(percent, message, moment(at))


def worker_of(row: Row, task_ids: Sequence[str]) -> Worker:
    """A worker out of its row, with the tasks it holds."""
    now, *record = row
    return WorkerRecord(*record).worker(task_ids, now)


def passage_of(row: Row) -> tuple[int, Passage]:
    """A row of the journal: its time and what it tells."""
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
