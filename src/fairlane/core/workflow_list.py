"""The list of workflows: their records, and what the tasks of those that run say now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, Order, Place
from fairlane.core.errors import InvalidCursor, InvalidFilter
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.ids import is_id
from fairlane.core.membership import checked_name
from fairlane.core.model import Task, moment, moment_or_none
from fairlane.core.ownership import Bounds
from fairlane.core.states import State
from fairlane.core.text import shown
from fairlane.core.workflow_records import KIND, Record, counts_of, record_of
from fairlane.core.workflows import Workflow, WorkflowState, read_workflow


class WorkflowFilter(msgspec.Struct, frozen=True):
    """Which workflows a reader asks for. None means any.

    `bounds`: those whose tasks are all within the bounds of a token.
    """

    states: frozenset[WorkflowState] | None = None
    name: str | None = None
    bounds: Bounds | None = None

    def admits(self, record: Record) -> bool:
        """Return whether a workflow matches, as far as its record tells."""
        return (self.name is None or record.name == self.name) and (
            self.bounds is None or _is_within(self.bounds, record)
        )

    def admits_state(self, state: WorkflowState) -> bool:
        """Return whether a workflow in this state matches."""
        return self.states is None or state in self.states


ALL: Final = WorkflowFilter()


class WorkflowSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow in a list. `tasks` is how many it was submitted with, `counts` how many of them
    are in which state: without those that were deleted while it ran."""

    workflow_id: str
    name: str | None
    state: WorkflowState
    tasks: int
    counts: Mapping[State, int]
    created_at: datetime
    ended_at: datetime | None


class WorkflowPage(msgspec.Struct, frozen=True):
    """Workflows, newest first. `next_cursor` is where to go on, None when that was all."""

    workflows: list[WorkflowSummary]
    next_cursor: str | None


class Listing(Documents, Protocol):
    """The operations that the list is composed of."""

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...


def new_workflow_filter(state: object = None, name: object = None) -> WorkflowFilter:
    """Return what a caller means by `state` (one or several) and `name`. Raises InvalidFilter."""
    named = None if name is None else checked_name(name)
    if state is None:
        return WorkflowFilter(name=named)
    given = [state] if isinstance(state, str) or not isinstance(state, Iterable) else state
    return WorkflowFilter(frozenset(map(_checked_state, given)), named)


def _checked_state(state: object) -> WorkflowState:
    try:
        return WorkflowState(state)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidFilter(
            f"The states of a workflow are {', '.join(WorkflowState)}. Got {shown(state)}."
        ) from None


def check_limit(limit: int) -> None:
    """Raise InvalidFilter unless a page may have so many workflows."""
    if not 1 <= limit <= limits.WORKFLOW_PAGE:
        raise InvalidFilter(f"A page has 1 to {limits.WORKFLOW_PAGE} workflows, not {limit:,}.")


@reads
def workflow_page(
    self: Listing, filter: WorkflowFilter = ALL, limit: int = 50, cursor: str | None = None
) -> Flow[WorkflowPage]:
    check_limit(limit)
    after = _place_of(cursor)
    now, stored = yield from self.list_documents(KIND, Order.NEWEST, limits.WORKFLOW_PAGE, after)
    found: list[WorkflowSummary] = []
    read = 0
    for each in stored:
        if each.at <= 0:  # what stands behind all records
            return WorkflowPage(found, None)
        if len(found) == limit or read >= limits.WORKFLOW_TASKS_READ:
            return WorkflowPage(found, _cursor_of(after))
        after = (each.at, each.id)
        record = record_of(each)
        if record is None or not each.counts(now) or not filter.admits(record):
            continue
        tasks: Workflow | None = None
        if _may_run(record):
            read += record.tasks
            tasks = yield from read_workflow(self, each.id, record.tasks)
        summary = _summary(each, record, tasks)
        if filter.admits_state(summary.state):
            found.append(summary)
    whole = len(stored) < limits.WORKFLOW_PAGE
    return WorkflowPage(found, None if whole else _cursor_of(after))


def _may_run(record: Record) -> bool:
    """Return whether the tasks know more than the record: those of a workflow that ended otherwise
    than completed may have been replayed."""
    return record.state is not WorkflowState.COMPLETED


def _summary(stored: Document, record: Record, found: Workflow | None) -> WorkflowSummary:
    running = found is not None and found.state is WorkflowState.RUNNING
    # What is left of a workflow does not tell how it ended.
    if found is not None and (record.is_open or running or found.complete):
        state, counts, ended_at = found.state, counts_of(found), found.ended_at
    else:
        state, counts, ended_at = record.state, record.counts, moment_or_none(record.ended_at)
    return WorkflowSummary(
        workflow_id=stored.id,
        name=record.name,
        state=state,
        tasks=record.tasks,
        counts=counts,
        created_at=moment(stored.at),
        ended_at=ended_at,
    )


def _is_within(bounds: Bounds, record: Record) -> bool:
    """Return whether all tasks of a workflow are within bounds."""
    return (
        (not bounds.own or record.owner == bounds.subject)
        and (bounds.queues is None or bounds.queues.issuperset(record.queues))
        and bounds.tags.items() <= record.tags.items()
    )


def _cursor_of(place: Place | None) -> str | None:
    return None if place is None else f"{place[0]}:{place[1]}"


def _place_of(cursor: str | None) -> Place | None:
    """Return where a page begins. Raises InvalidCursor."""
    if cursor is None:
        return None
    at, _, workflow_id = cursor.partition(":")
    if not (at.isascii() and at.isdecimal() and len(at) <= _DIGITS and is_id(workflow_id)):
        raise InvalidCursor
    return int(at), workflow_id


_DIGITS: Final = 18
