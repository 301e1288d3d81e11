"""Which tasks a request means: in a query for lists, in a body for changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidFilter
from fairlane.core.filters import EVERYTHING, Filter, new_filter
from fairlane.core.priority import priority_of
from fairlane.core.states import State
from fairlane.core.text import shown
from fairlane.wire.times import Instant
from fairlane.wire.values import (
    SOME,
    Level,
    Listed,
    Mark,
    NameText,
    PriorityName,
    PriorityText,
    TagPair,
    Tags,
    TaskIds,
)

LIMIT = 50
Limit = Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)]
DEAD = frozenset({State.DEAD_LETTER})

UnsetType = msgspec.UnsetType
UNSET = msgspec.UNSET


class FilterQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks that fulfil all of it; a parameter that is repeated admits any of its values, but for
    `tag` (name:value), where all must fit. `since` and `until` bound the time of submission."""

    type: tuple[NameText, ...] = ()
    queue: tuple[NameText, ...] = ()
    priority: tuple[PriorityText, ...] = ()
    tag: tuple[TagPair, ...] = ()
    worker: NameText | UnsetType = UNSET
    since: Instant | UnsetType = UNSET
    until: Instant | UnsetType = UNSET
    ended_before: Instant | UnsetType = UNSET

    def wanted(self) -> dict[str, Any]:
        """The same in the words of `new_filter`."""
        return _given(
            type=self.type or UNSET,
            queue=self.queue or UNSET,
            priority=[priority_of(each) for each in self.priority] or UNSET,
            tags=_tags(self.tag) or UNSET,
            worker=self.worker,
            since=self.since,
            until=self.until,
            ended_before=self.ended_before,
        )


class TaskQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks."""

    status: tuple[State, ...] = ()

    def chosen(self) -> Filter:
        """Which tasks."""
        return new_filter(status=self.status or None, **self.wanted())


class TaskListQuery(TaskQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and which page of them."""

    limit: Limit = LIMIT
    cursor: str | None = None


class DeadListQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters, and which page of them. `failure`: those of a group of the analysis."""

    failure: Mark | UnsetType = UNSET
    limit: Limit = LIMIT
    cursor: str | None = None

    def chosen(self) -> Filter:
        """Which tasks."""
        return new_filter(status=DEAD, **self.wanted())


class DeadPurgeQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters are to go. All of them only if that is said: `all=true`. `failure`: those
    of a group of the analysis."""

    failure: Mark | UnsetType = UNSET
    all: bool = False
    cursor: str | None = None

    def chosen(self) -> Filter:
        """Which tasks."""
        return _meant(self.all, new_filter(**self.wanted()), DEAD, self.failure)


class FilterRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks that fulfil all of it; a list admits any of its values, but all `tags` must fit.

    All tasks there are only if that is said: `"all": true`. `cursor`: where an earlier answer to
    the same request says that there is more.
    """

    type: NameText | Listed | UnsetType = UNSET
    queue: NameText | Listed | UnsetType = UNSET
    priority: (
        PriorityName | Level | Annotated[tuple[PriorityName | Level, ...], SOME] | UnsetType
    ) = UNSET
    tags: Tags | UnsetType = UNSET
    worker: NameText | UnsetType = UNSET
    since: Instant | UnsetType = UNSET
    until: Instant | UnsetType = UNSET
    ended_before: Instant | UnsetType = UNSET
    all: bool = False
    cursor: str | None = None

    def wanted(self) -> dict[str, Any]:
        """The same in the words of `new_filter`."""
        return _given(
            type=self.type,
            queue=self.queue,
            priority=self.priority,
            tags=self.tags,
            worker=self.worker,
            since=self.since,
            until=self.until,
            ended_before=self.ended_before,
        )


class TaskSweep(FilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks are to be changed: by id, up to 500, or by filter. `status` goes with both: of
    tasks that are named, only those are changed that are in one of these states at that moment."""

    status: State | Annotated[tuple[State, ...], SOME] | UnsetType = UNSET
    task_ids: TaskIds | None = None

    def chosen(self) -> Filter:
        """Which tasks, where they are not named by id."""
        chosen = new_filter(**self.wanted(), **_given(status=self.status))
        return _meant(self.all, chosen, chosen.states)

    def named(self) -> tuple[str, ...] | None:
        """The tasks that are named by id, if that is how they are chosen."""
        if self.task_ids is not None and any((self.wanted(), self.all, self.cursor)):
            raise InvalidFilter(
                "Name tasks by task_ids or choose them by filter, not both; status goes with both."
            )
        return self.task_ids

    def among(self) -> frozenset[State] | None:
        """The states that tasks are to be in, None: in any."""
        return new_filter(**_given(status=self.status)).states


class ReplayTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a task is made ready again: with its retries anew, and perhaps at another priority."""

    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None


class TaskReplay(TaskSweep, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks are to be made ready again, and how."""

    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None


class DeadReplay(FilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters are to be made ready again, and how. `failure`: those of a group of the
    analysis."""

    failure: Mark | UnsetType = UNSET
    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None

    def chosen(self) -> Filter:
        """Which tasks."""
        return _meant(self.all, new_filter(**self.wanted()), DEAD, self.failure)


def _given(**words: Any) -> dict[str, Any]:
    return {name: value for name, value in words.items() if value is not UNSET}


def _meant(
    everything: bool,
    chosen: Filter,
    states: frozenset[State] | None,
    failure: str | UnsetType = UNSET,
) -> Filter:
    """The filter, if whoever left it empty said that everything is meant, or how it failed."""
    if everything is (chosen == EVERYTHING and failure is UNSET):
        return msgspec.structs.replace(chosen, states=states)
    if everything:
        raise InvalidFilter("All tasks are meant, or those that a filter admits: not both.")
    raise InvalidFilter("Choose tasks (by type, queue …), or say that all are meant: all = true.")


def _tags(pairs: Iterable[str]) -> dict[str, str]:
    tags: dict[str, str] = {}
    for pair in pairs:
        name, colon, value = pair.partition(":")
        if not colon or not name:
            raise InvalidFilter(f"A tag is asked for as name:value. Got {shown(pair)}.")
        if tags.setdefault(name, value) != value:
            raise InvalidFilter(f"No task has two values of the tag {shown(name)}.")
    return tags
