"""Events: the journal as `/ws`, `/api/v1/events` and `fairlane events --json` show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.machine import Verb
from fairlane.core.model import Event
from fairlane.core.priority import shown_as
from fairlane.wire.runs import ProgressView
from fairlane.wire.times import Moment, iso


class EventType(StrEnum):
    """The types of events."""

    SUBMITTED = "task.submitted"
    STARTED = "task.started"
    PROGRESS = "task.progress"
    COMPLETED = "task.completed"
    FAILED = "task.failed"
    RETRYING = "task.retrying"
    DEAD_LETTER = "task.dead_letter"
    CANCELLED = "task.cancelled"
    QUEUED = "task.queued"
    WAITING = "task.waiting"
    SNOOZED = "task.snoozed"
    DELETED = "task.deleted"
    JOINED = "worker.joined"
    LEFT = "worker.left"
    PAUSED = "worker.paused"
    DRAINING = "worker.draining"
    DEAD = "worker.dead"
    DEPTH = "queue.depth"
    METRICS = "system.metrics"
    SKIPPED = "schedule.skipped"
    WORKFLOW_SUBMITTED = "workflow.submitted"
    WORKFLOW_COMPLETED = "workflow.completed"
    WORKFLOW_FAILED = "workflow.failed"
    WORKFLOW_CANCELLED = "workflow.cancelled"


class Notice(StrEnum):
    """Notices about the stream itself."""

    READY = "ready"
    """The stream has started, or the subscription was replaced."""
    CURSOR = "cursor"
    """No subscribed event happened up to this cursor."""
    RESET = "reset"
    """The journal no longer has what came right after the client's cursor: events were missed."""
    ERROR = "error"


STATES: Final = frozenset({EventType.DEPTH, EventType.METRICS})
"""The current state; sent if it changed."""
WORKFLOWS: Final = frozenset(
    {
        EventType.WORKFLOW_SUBMITTED,
        EventType.WORKFLOW_COMPLETED,
        EventType.WORKFLOW_FAILED,
        EventType.WORKFLOW_CANCELLED,
    }
)
FIGURES: Final = STATES | WORKFLOWS | {EventType.SKIPPED}
"""Not from the journal; sent only to clients that name these types."""

TYPES: Final[Mapping[str, EventType]] = {
    Verb.SUBMIT: EventType.SUBMITTED,
    # A claim sets the state to executing. The start of the handler is recorded a little later, and
    # not for every run: it may have ended by then.
    Verb.CLAIM: EventType.STARTED,
    "progress": EventType.PROGRESS,
    Verb.COMPLETE: EventType.COMPLETED,
    Verb.FAIL: EventType.FAILED,
    Verb.EXPIRE: EventType.FAILED,
    Verb.RETRY: EventType.RETRYING,
    Verb.DEAD_LETTER: EventType.DEAD_LETTER,
    Verb.CANCEL: EventType.CANCELLED,
    Verb.DUE: EventType.QUEUED,
    Verb.RELEASE: EventType.QUEUED,
    Verb.REPLAY: EventType.QUEUED,
    Verb.RERUN: EventType.QUEUED,
    Verb.REBIND: EventType.WAITING,
    Verb.SNOOZE: EventType.SNOOZED,
    Verb.DELETE: EventType.DELETED,
    "worker_joined": EventType.JOINED,
    "worker_active": EventType.JOINED,
    "worker_left": EventType.LEFT,
    "worker_unhealthy": EventType.PAUSED,
    "worker_draining": EventType.DRAINING,
    "worker_dead": EventType.DEAD,
}
"""The type of each verb in the journal. Every change of a task's state has one."""

_ENDS: Final = frozenset(
    {
        EventType.COMPLETED,
        EventType.FAILED,
        EventType.RETRYING,
        EventType.DEAD_LETTER,
        EventType.CANCELLED,
    }
)


class TaskData(msgspec.Struct, frozen=True, kw_only=True):
    """The task of an event. `duration_ms` is set if a run ended, and null if it had not started;
    `progress` is set if the event is a progress report."""

    task_id: str
    type: str | None
    queue: str | None
    priority: str | int
    attempt: int
    worker_id: str | None
    duration_ms: float | msgspec.UnsetType | None = msgspec.UNSET
    progress: ProgressView | msgspec.UnsetType = msgspec.UNSET


class WorkerData(msgspec.Struct, frozen=True):
    """The worker of an event."""

    worker_id: str | None


class LiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event. `cursor`: where to continue after it. Of several events in one journal entry, only
    the last one has the cursor of the entry."""

    type: str
    timestamp: Moment
    data: Any
    cursor: str | msgspec.UnsetType = msgspec.UNSET


class EventPage(msgspec.Struct, frozen=True):
    """Events after a cursor, and the cursor to continue from. `reset`: the journal no longer has
    what came right after the given cursor."""

    events: tuple[LiveEvent, ...]
    cursor: str
    reset: bool


Id = Annotated[str, msgspec.Meta(max_length=64)]
Name = Annotated[str, msgspec.Meta(max_length=limits.NAME_LENGTH)]


class Subscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new subscription, which replaces the one before. What is left out is not restricted."""

    subscribe: Annotated[tuple[EventType, ...], msgspec.Meta(max_length=100)] = ()
    task_ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=1_000)] = ()
    queues: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)] = ()


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cursor to continue from (default: now), and which events to return."""

    cursor: Id | None = None
    type: tuple[EventType, ...] = ()
    task_id: tuple[Id, ...] = ()
    queue: tuple[Name, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = 100
    """About how many events a page has."""


def _live_event(
    event: Event, cursor: str | None, progress: ProgressView | None = None
) -> LiveEvent | None:
    """Return a journal event as JSON shows it; None if it changed nothing visible."""
    kind = TYPES.get(event.verb)
    if kind is None:
        return None
    return LiveEvent(
        type=kind.value,
        timestamp=iso(event.at),
        data=WorkerData(event.worker_id)
        if event.task_id is None
        else _task_data(event, event.task_id, kind, progress),
        cursor=msgspec.UNSET if cursor is None else cursor,
    )


def is_progress(event: Event) -> bool:
    """Return whether an event is a progress report."""
    return TYPES.get(event.verb) is EventType.PROGRESS


def tasks_with_progress(events: Sequence[Event]) -> list[str]:
    """Return the tasks whose last event is progress: a later event makes the report outdated."""
    last = {each.task_id: each for each in events if each.verb in TYPES}
    return [
        task_id for task_id, event in last.items() if task_id is not None and is_progress(event)
    ]


def encode_events(
    events: Sequence[Event], after: str | None, progress: Mapping[str, ProgressView]
) -> Iterator[tuple[Event, LiveEvent]]:
    """Yield the events of whole journal entries, read after a cursor, as JSON shows them.

    `progress`: the reports of `tasks_with_progress`. Of several progress events of a task, only the
    last one is shown. Of an entry with several events, only the last one has the entry's cursor: a
    client that resumes in the middle of an entry gets the whole entry again, and misses nothing.
    """
    previous, current = after, after
    latest = {
        each.task_id: number
        for number, each in enumerate(events)
        if each.task_id in progress and is_progress(each)
    }
    for number, each in enumerate(events):
        if each.cursor != current:
            previous, current = current, each.cursor
        report = None
        if is_progress(each):
            if latest.get(each.task_id) != number:
                continue
            report = progress[str(each.task_id)]
        ends_entry = number + 1 == len(events) or events[number + 1].cursor != current
        live = _live_event(each, current if ends_entry else previous, report)
        if live is not None:
            yield each, live


def _task_data(
    event: Event, task_id: str, kind: EventType, progress: ProgressView | None
) -> TaskData:
    duration: float | msgspec.UnsetType | None = msgspec.UNSET
    if kind in _ENDS:
        duration = None if event.seconds is None else round(1_000 * event.seconds, 3)
    return TaskData(
        task_id=task_id,
        type=event.type,
        queue=event.queue,
        priority=shown_as(event.level or 0),
        attempt=event.attempt or 0,
        worker_id=event.worker_id,
        duration_ms=duration,
        progress=msgspec.UNSET if progress is None else progress,
    )
