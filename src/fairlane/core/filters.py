"""Filters: which tasks a reader asks for.

A filter is a conjunction; a condition that it leaves out matches every task. Lists run from the
newest task to the oldest, by task id, and continue after a cursor. An engine examines a bounded
number of tasks per call, so a page may be short or even empty although there are more tasks: then
it has a cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from fairlane.core import cursors, limits
from fairlane.core.errors import InvalidFilter, InvalidPriority
from fairlane.core.lanes import Lane
from fairlane.core.model import Spec, Task, TaskError, microseconds_of
from fairlane.core.priority import level_of
from fairlane.core.states import State
from fairlane.core.text import NAME_RULE, is_name, is_plain, shown

T = TypeVar("T")


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions that a task must meet. None, or no tags, means any. Times are microseconds.

    `since` and `until` bound the time of submission, `ended_before` the time of the end (and leaves
    out what has not ended).
    """

    states: frozenset[State] | None = None
    types: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    levels: frozenset[int] | None = None
    tags: Mapping[str, str] = {}
    worker_id: str | None = None
    since: int | None = None
    until: int | None = None
    ended_before: int | None = None
    workflow_id: str | None = None
    schedule_id: str | None = None
    owner: str | None = None

    @property
    def countable(self) -> bool:
        """Whether the counters know how many tasks it admits."""
        return self == Filter(
            states=self.states, types=self.types, queues=self.queues, levels=self.levels
        )

    @property
    def reads_spec(self) -> bool:
        """Whether it asks for what only a task's spec tells: see `admits_spec`."""
        asked = (self.workflow_id, self.schedule_id, self.owner)
        return bool(self.tags) or asked != (None, None, None)

    def admits_lane(self, lane: Lane) -> bool:
        """Return whether tasks of this lane may match."""
        return (self.types is None or lane.type in self.types) and (
            self.queues is None or lane.queue in self.queues
        )

    def admits_spec(self, stored: bytes | None) -> bool:
        """Return whether a task with this stored spec may match."""
        spec = Spec.decode(stored)
        return (
            self.tags.items() <= spec.tags.items()
            and (self.workflow_id is None or spec.workflow_id == self.workflow_id)
            and (self.schedule_id is None or spec.schedule_id == self.schedule_id)
            and (self.owner is None or spec.owner == self.owner)
        )

    def admits(
        self,
        state: State,
        level: int,
        created_at: int,
        completed_at: int | None,
        worker_id: str | None,
    ) -> bool:
        """Return whether a task with these values may match."""
        return (
            (self.states is None or state in self.states)
            and (self.levels is None or level in self.levels)
            and (self.worker_id is None or worker_id == self.worker_id)
            and (self.since is None or created_at >= self.since)
            and (self.until is None or created_at < self.until)
            and (
                self.ended_before is None
                or (completed_at is not None and completed_at < self.ended_before)
            )
        )


EVERYTHING = Filter()


class Found(msgspec.Struct, frozen=True):
    """Ids of tasks, newest first. `cursor` is where to go on, None when that was all."""

    task_ids: list[str]
    cursor: str | None


class Page(msgspec.Struct, frozen=True):
    """Tasks, newest first. `next_cursor` is where to go on, None when that was all."""

    tasks: list[Task]
    next_cursor: str | None


_VALUE_BYTES = 1_000
"""What a task or a run weighs by itself: the time to show it."""


def weight_of(task: Task) -> int:
    """Return about how many bytes a task takes in a response."""
    runs = sum(_VALUE_BYTES + _size_of(run.error) for run in task.attempts)
    content = len(task.payload) + len(task.result or b"")
    return _VALUE_BYTES + content + _size_of(task.error) + runs


class PageRoom:
    """The room that is left in a page for tasks. The first task fits in any case."""

    def __init__(self) -> None:
        self._left = limits.PAGE_BYTES
        self._empty = True

    def takes(self, task: Task) -> bool:
        """Return whether a task fits, which then takes its room."""
        self._left -= weight_of(task)
        fits = self._empty or self._left >= 0
        self._empty = False
        return fits


def _size_of(error: TaskError | None) -> int:
    return 0 if error is None else len(error.message) + len(error.traceback or "")


class Total(msgspec.Struct, frozen=True):
    """How many tasks a filter admits. `exact` is False when there may be more."""

    count: int
    exact: bool


def new_filter(
    *,
    status: str | Iterable[str] | None = None,
    type: str | Iterable[str] | None = None,
    queue: str | Iterable[str] | None = None,
    priority: str | int | Iterable[str | int] | None = None,
    tags: Mapping[str, str] | None = None,
    worker: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    ended_before: datetime | None = None,
    workflow_id: str | None = None,
    schedule_id: str | None = None,
    owner: str | None = None,
) -> Filter:
    """Return a checked filter from what a caller gave: one value or several."""
    return Filter(
        states=_several(status, _state),
        types=_several(type, _name),
        queues=_several(queue, _name),
        levels=_several(priority, _level),
        tags=_tags(tags),
        worker_id=None if worker is None else _name(worker),
        since=_time("since", since),
        until=_time("until", until),
        ended_before=_time("ended_before", ended_before),
        workflow_id=_text("workflow_id", workflow_id),
        schedule_id=_text("schedule_id", schedule_id),
        owner=_text("owner", owner),
    )


_TASKS = "t"


def cursor_of(task_id: str) -> str:
    """Return a cursor after this task."""
    return cursors.cursor_of(_TASKS, task_id)


def task_id_of(cursor: str | None) -> str | None:
    """Return the task that a cursor stands after; None: begin with the newest."""
    return cursors.item_of(_TASKS, cursor)


def _several(given: object, one: Callable[[object], T]) -> frozenset[T] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        return frozenset({one(given)})
    found = frozenset(one(each) for each in given)
    if not found:
        raise InvalidFilter("A filter that lists nothing admits nothing: leave it out.")
    return found


def _state(name: object) -> State:
    for state in State:
        if name == state:
            return state
    raise InvalidFilter(f"A status is one of {', '.join(State)}. Got {shown(name)}.")


def _name(name: object) -> str:
    if is_name(name):
        return name
    raise InvalidFilter(f"The name of a type, queue or worker has {NAME_RULE}. Got {shown(name)}.")


def _level(priority: object) -> int:
    try:
        return level_of(priority)
    except InvalidPriority as error:
        raise InvalidFilter(error.message) from None


def _tags(tags: object) -> dict[str, str]:
    if tags is None:
        return {}
    if isinstance(tags, Mapping) and all(is_plain(text) for item in tags.items() for text in item):
        return dict(tags)
    raise InvalidFilter(f"Tags are looked for by a dict from text to text. Got {shown(tags)}.")


def _time(field: str, time: object) -> int | None:
    if time is None:
        return None
    if isinstance(time, datetime) and time.utcoffset() is not None:
        return microseconds_of(time)
    raise InvalidFilter(f"{field} is a datetime with a time zone. Got {shown(time)}.")


def _text(field: str, text: object) -> str | None:
    if text is None or (is_plain(text) and text):
        return text
    raise InvalidFilter(f"{field} is a short text. Got {shown(text)}.")
