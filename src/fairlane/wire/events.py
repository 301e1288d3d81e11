"""Live events: what happens, as `/ws` and `/api/v1/events` tell it."""

from __future__ import annotations

from collections.abc import Mapping
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
    """What can be subscribed to."""

    SUBMITTED = "task.submitted"
    STARTED = "task.started"
    PROGRESS = "task.progress"
    COMPLETED = "task.completed"
    FAILED = "task.failed"
    RETRYING = "task.retrying"
    DEAD_LETTER = "task.dead_letter"
    CANCELLED = "task.cancelled"
    QUEUED = "task.queued"
    SNOOZED = "task.snoozed"
    DELETED = "task.deleted"
    JOINED = "worker.joined"
    LEFT = "worker.left"
    PAUSED = "worker.paused"
    DRAINING = "worker.draining"
    DEAD = "worker.dead"
    DEPTH = "queue.depth"
    METRICS = "system.metrics"


class Notice(StrEnum):
    """What a stream says of itself."""

    READY = "ready"
    """It has begun, or begun to go by another subscription."""
    CURSOR = "cursor"
    """Nothing that was subscribed to has happened up to here."""
    RESET = "reset"
    """What came right after the client's cursor is no longer kept: something was missed."""
    ERROR = "error"


FIGURES: Final = frozenset({EventType.DEPTH, EventType.METRICS})
"""Not out of the journal, and only for those who name them."""

TYPES: Final[Mapping[str, EventType]] = {
    Verb.SUBMIT: EventType.SUBMITTED,
    # When a task is executing by its state. That it really began to run is noted a little later,
    # and not for every run: it may have ended by then.
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
    Verb.SNOOZE: EventType.SNOOZED,
    Verb.DELETE: EventType.DELETED,
    "worker_joined": EventType.JOINED,
    "worker_active": EventType.JOINED,
    "worker_left": EventType.LEFT,
    "worker_unhealthy": EventType.PAUSED,
    "worker_draining": EventType.DRAINING,
    "worker_dead": EventType.DEAD,
}
"""What the verbs of the journal are called here. All that changes a task's state is told."""

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
    """The task that an event is about. `duration_ms` is there when a run ended, null if none had
    begun; `progress` is there when some was made."""

    task_id: str
    type: str | None
    queue: str | None
    priority: str | int
    attempt: int
    worker_id: str | None
    duration_ms: float | msgspec.UnsetType | None = msgspec.UNSET
    progress: ProgressView | msgspec.UnsetType = msgspec.UNSET


class WorkerData(msgspec.Struct, frozen=True):
    """The worker that an event is about."""

    worker_id: str | None


class LiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened. `cursor` is where to go on from after it; of several that happened
    at once, it is the one before them until the last of them was told."""

    type: str
    timestamp: Moment
    data: Any
    cursor: str | msgspec.UnsetType = msgspec.UNSET


class EventPage(msgspec.Struct, frozen=True):
    """What happened after a cursor, and the cursor to go on from. `reset`: what came right after
    the one given is no longer kept."""

    events: tuple[LiveEvent, ...]
    cursor: str
    reset: bool


Id = Annotated[str, msgspec.Meta(max_length=64)]
Name = Annotated[str, msgspec.Meta(max_length=limits.NAME_LENGTH)]


class Subscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client wants to hear of, in place of what it wanted before; nothing: no limits."""

    subscribe: Annotated[tuple[EventType, ...], msgspec.Meta(max_length=100)] = ()
    task_ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=1_000)] = ()
    queues: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)] = ()


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to go on from (from now, if left out), and what to hear of."""

    cursor: Id | None = None
    type: tuple[EventType, ...] = ()
    task_id: tuple[Id, ...] = ()
    queue: tuple[Name, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = 100
    """Of a page, about so many."""


def event_of(
    event: Event, cursor: str | None, progress: ProgressView | None = None
) -> LiveEvent | None:
    """What is told of an entry of the journal; None if it changed nothing that anyone sees."""
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
