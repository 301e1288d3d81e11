"""Dead letters in groups: failures of one type that look alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b

import msgspec

from fairlane.core.model import Task


class Group(msgspec.Struct, frozen=True):
    """Dead letters of one type, error code and shape of message, with one of them to look at."""

    type: str
    code: str | None
    shape: str
    count: int
    first_seen: datetime
    last_seen: datetime
    retriable_share: float
    example: str


class Analysis(msgspec.Struct, frozen=True):
    """Groups, the largest first. `complete` is False when there are more than were looked at."""

    groups: list[Group]
    analysed: int
    complete: bool


_SHAPE_CHARACTERS = 200

# What varies from one failure to the next, and what it is replaced by. The order matters: a UUID
# has digits in it. The apostrophe of "can't" opens no quotation.
_VARYING = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"""(?<!\w)b?'[^']*'(?!\w)|"[^"]*\""""), "<text>"),
    (re.compile(r"\b(?:0x[0-9a-fA-F]+|(?=[a-fA-F]*\d)[0-9a-fA-F]{8,})\b"), "<id>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
)


def shape_of(message: str) -> str:
    """Return a message without the parts that vary from one failure to the next."""
    shape = message[: 2 * _SHAPE_CHARACTERS]
    for pattern, stand_in in _VARYING:
        shape = pattern.sub(stand_in, shape)
    return " ".join(shape.split())[:_SHAPE_CHARACTERS]


Failure = tuple[str, str | None, str]
"""What groups failures: their type, code and shape of message."""


def failure_of(task: Task) -> Failure:
    """Return how a task failed."""
    if task.error is None:
        return task.type, None, ""
    return task.type, task.error.code, shape_of(task.error.message)


def mark_of(failure: Failure) -> str:
    """Return a short name for a kind of failure, to find the tasks that failed in this way."""
    return blake2b(msgspec.json.encode(failure), digest_size=8).hexdigest()


def analyse(tasks: Iterable[Task], *, complete: bool) -> Analysis:
    """Dead letters in groups of alike failures."""
    analyser = Analyser()
    for task in tasks:
        analyser.add(task)
    return analyser.result(complete=complete)


class Analyser:
    """Groups dead letters one by one. It keeps what it answers, and not the tasks."""

    def __init__(self) -> None:
        self.count = 0
        self._groups: dict[Failure, _Group] = {}

    def add(self, task: Task) -> None:
        """Count a dead letter."""
        failure = failure_of(task)
        group = self._groups.get(failure)
        if group is None:
            group = self._groups[failure] = _Group(task)
        group.add(task)
        self.count += 1

    def result(self, *, complete: bool) -> Analysis:
        """Return the groups."""
        groups = [group.result(*failure) for failure, group in self._groups.items()]
        groups.sort(key=lambda group: (-group.count, group.type, group.shape))
        return Analysis(groups, self.count, complete)


class _Group:
    def __init__(self, first: Task) -> None:
        self._example = first.task_id
        self._first = self._last = _end_of(first)
        self._count = self._retriable = 0

    def add(self, task: Task) -> None:
        end = _end_of(task)
        self._first, self._last = min(self._first, end), max(self._last, end)
        self._count += 1
        self._retriable += task.error is not None and task.error.retriable

    def result(self, type: str, code: str | None, shape: str) -> Group:
        return Group(
            type=type,
            code=code,
            shape=shape,
            count=self._count,
            first_seen=self._first,
            last_seen=self._last,
            retriable_share=self._retriable / self._count,
            example=self._example,
        )


def _end_of(task: Task) -> datetime:
    return task.completed_at or task.updated_at
