"""Filters of tasks: in a query for lists, in a body for changes."""

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
    Key,
    Level,
    Listed,
    Mark,
    NameText,
    PriorityName,
    PriorityText,
    ScheduleId,
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
    """Tasks that match all parameters. A repeated parameter matches any of its values, except `tag`
    (name:value), where all must match. `since` and `until` limit the time of submission."""

    type: tuple[NameText, ...] = ()
    queue: tuple[NameText, ...] = ()
    priority: tuple[PriorityText, ...] = ()
    tag: tuple[TagPair, ...] = ()
    worker: NameText | UnsetType = UNSET
    owner: Key | UnsetType = UNSET
    schedule_id: ScheduleId | UnsetType = UNSET
    since: Instant | UnsetType = UNSET
    until: Instant | UnsetType = UNSET
    ended_before: Instant | UnsetType = UNSET

    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `new_filter`."""
        return _given(
            type=self.type or UNSET,
            queue=self.queue or UNSET,
            priority=[priority_of(each) for each in self.priority] or UNSET,
            tags=_tags(self.tag) or UNSET,
            worker=self.worker,
            owner=self.owner,
            schedule_id=self.schedule_id,
            since=self.since,
            until=self.until,
            ended_before=self.ended_before,
        )


class TaskQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks."""

    status: tuple[State, ...] = ()

    def chosen(self) -> Filter:
        """Return the filter."""
        return new_filter(status=self.status or None, **self.wanted())


class TaskListQuery(TaskQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and which page of them."""

    limit: Limit = LIMIT
    cursor: str | None = None


class DeadListQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters, and which page of them. `failure`: a group of the analysis."""

    failure: Mark | UnsetType = UNSET
    limit: Limit = LIMIT
    cursor: str | None = None

    def chosen(self) -> Filter:
        """Return the filter."""
        return new_filter(status=DEAD, **self.wanted())


class DeadPurgeQuery(FilterQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to delete. All of them only with `all=true`. `failure`: a group of the
    analysis."""

    failure: Mark | UnsetType = UNSET
    all: bool = False
    cursor: str | None = None

    def chosen(self) -> Filter:
        """Return the filter."""
        return _meant(self.all, new_filter(**self.wanted()), DEAD, self.failure)


class FilterRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks that match all fields. A list matches any of its values, but all `tags` must match.

    All tasks only with `"all": true`. `cursor`: the `next_cursor` of an earlier response to the
    same request.
    """

    type: NameText | Listed | UnsetType = UNSET
    queue: NameText | Listed | UnsetType = UNSET
    priority: (
        PriorityName | Level | Annotated[tuple[PriorityName | Level, ...], SOME] | UnsetType
    ) = UNSET
    tags: Tags | UnsetType = UNSET
    worker: NameText | UnsetType = UNSET
    owner: Key | UnsetType = UNSET
    schedule_id: ScheduleId | UnsetType = UNSET
    since: Instant | UnsetType = UNSET
    until: Instant | UnsetType = UNSET
    ended_before: Instant | UnsetType = UNSET
    all: bool = False
    cursor: str | None = None

    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `new_filter`."""
        return _given(
            type=self.type,
            queue=self.queue,
            priority=self.priority,
            tags=self.tags,
            worker=self.worker,
            owner=self.owner,
            schedule_id=self.schedule_id,
            since=self.since,
            until=self.until,
            ended_before=self.ended_before,
        )


class TaskSweep(FilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks to change: up to 500 by id, or by filter. `status` goes with both: tasks in other
    states are not changed."""

    status: State | Annotated[tuple[State, ...], SOME] | UnsetType = UNSET
    task_ids: TaskIds | None = None

    def chosen(self) -> Filter:
        """Return the filter, if the tasks are not named by id."""
        chosen = new_filter(**self.wanted(), **_given(status=self.status))
        return _meant(self.all, chosen, chosen.states)

    def named(self) -> tuple[str, ...] | None:
        """Return the ids, if the tasks are named by id."""
        if self.task_ids is not None and any((self.wanted(), self.all, self.cursor)):
            raise InvalidFilter(
                "Name tasks by task_ids or choose them by filter, not both; status goes with both."
            )
        return self.task_ids

    def among(self) -> frozenset[State] | None:
        """Return the states that tasks must be in; None: any."""
        return new_filter(**_given(status=self.status)).states


class ReplayTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a task is replayed: whether its retries are reset, and its new priority."""

    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None


class TaskReplay(TaskSweep, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks to replay, and how."""

    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None


class DeadReplay(FilterRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to replay, and how. `failure`: a group of the analysis."""

    failure: Mark | UnsetType = UNSET
    reset_retry_count: bool = True
    new_priority: PriorityName | Level | None = None

    def chosen(self) -> Filter:
        """Return the filter."""
        return _meant(self.all, new_filter(**self.wanted()), DEAD, self.failure)


def _given(**words: Any) -> dict[str, Any]:
    return {name: value for name, value in words.items() if value is not UNSET}


def _meant(
    everything: bool,
    chosen: Filter,
    states: frozenset[State] | None,
    failure: str | UnsetType = UNSET,
) -> Filter:
    """Return the filter. Raises InvalidFilter if it is empty without `all`, or used with it."""
    if everything is (chosen == EVERYTHING and failure is UNSET):
        return msgspec.structs.replace(chosen, states=states)
    if everything:
        raise InvalidFilter("Use either all = true or a filter, not both.")
    raise InvalidFilter("Choose tasks (by type, queue …), or all of them with all = true.")


def _tags(pairs: Iterable[str]) -> dict[str, str]:
    tags: dict[str, str] = {}
    for pair in pairs:
        name, colon, value = pair.partition(":")
        if not colon or not name:
            raise InvalidFilter(f"A tag filter is name:value. Got {shown(pair)}.")
        if tags.setdefault(name, value) != value:
            raise InvalidFilter(f"No task has two values of the tag {shown(name)}.")
    return tags
