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
    members: dict[Failure, list[Task]] = {}
    for task in tasks:
        members.setdefault(failure_of(task), []).append(task)
    groups = [_group(*failure, alike) for failure, alike in members.items()]
    groups.sort(key=lambda group: (-group.count, group.type, group.shape))
    return Analysis(groups, sum(group.count for group in groups), complete)


def _group(type: str, code: str | None, shape: str, tasks: list[Task]) -> Group:
    ends = [task.completed_at or task.updated_at for task in tasks]
    retriable = sum(task.error is not None and task.error.retriable for task in tasks)
    return Group(
        type=type,
        code=code,
        shape=shape,
        count=len(tasks),
        first_seen=min(ends),
        last_seen=max(ends),
        retriable_share=retriable / len(tasks),
        example=tasks[0].task_id,
    )
