"""The worker protocol, `/internal/workers`: requests of workers in any language, and responses.

Unknown fields are ignored, so that a worker may be newer than the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidResult, InvalidWorker, ResultTooLarge
from fairlane.core.ids import checked_all
from fairlane.core.model import Claimed, NewWorker, TaskError, WorkerStatus
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.raw_json import NotJson, TooDeep, build, check_json
from fairlane.core.states import State
from fairlane.core.stored_forms import plain
from fairlane.core.text import storable
from fairlane.wire.times import Moment, iso_of_or_none
from fairlane.wire.values import Capacity, Line, NameText, TaskId, WorkerName

POLL_INTERVAL_MS: Final = 1_000
HEARTBEAT_INTERVAL_MS: Final = 30_000
BEATS_A_LEASE: Final = 3
"""A worker is dead after this many intervals without a heartbeat."""
MOST_AT_ONCE: Final = 10_000

_HEALTH_ROOM: Final = 4 * limits.HEALTH_BYTES
"""Health may be sent with white space, which is not kept."""

_LONGEST_INTERVAL_MS: Final = int(limits.LEASE_SECONDS_LONGEST * 1_000) // BEATS_A_LEASE

Seconds = Annotated[float, msgspec.Meta(ge=0, le=limits.DELAY_SECONDS)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A worker registers. Without `queues` or `types` it takes tasks of all of them."""

    capabilities: frozenset[NameText] = frozenset()
    capacity: Capacity = 5
    queues: frozenset[NameText] | None = None
    types: frozenset[NameText] | None = None
    host: Line = ""
    version: Line = ""
    heartbeat_interval_ms: Annotated[int, msgspec.Meta(ge=100, le=_LONGEST_INTERVAL_MS)] = (
        HEARTBEAT_INTERVAL_MS
    )
    lease_seconds: Annotated[float, msgspec.Meta(gt=0, le=limits.LEASE_SECONDS_LONGEST)] | None = (
        None
    )
    """How long it may send no heartbeat; default: three heartbeat intervals."""
    reports_start: bool = False
    """It calls `start` before it runs a task. Then a task that it does not start in time (30 s by
    default) goes to others, at no cost: the response to a poll may have been lost. Otherwise the
    tasks of a poll count as started when they are handed out."""
    name: WorkerName | None = None
    """The beginning of its id."""
    worker_id: str | None = None
    """The id from an earlier registration, which is renewed."""

    def worker(self, worker_id: str, start_within: float | None) -> NewWorker:
        """Return the worker with this id. `start_within`: for workers that report starts."""
        return NewWorker(
            worker_id,
            capacity=self.capacity,
            capabilities=self.capabilities,
            queues=self.queues,
            types=self.types,
            host=self.host,
            version=self.version,
            lease=self._lease(),
            start_within=start_within if self.reports_start else None,
        )

    def _lease(self) -> float:
        if self.lease_seconds is not None:
            return self.lease_seconds
        return BEATS_A_LEASE * self.heartbeat_interval_ms / 1_000


class Registered(msgspec.Struct, frozen=True, omit_defaults=True):
    """The id for all further calls of the worker, and how often to make them."""

    worker_id: str
    poll_interval_ms: int
    heartbeat_interval_ms: int
    start_within_seconds: float | msgspec.UnsetType = msgspec.UNSET
    """How long a task may wait for its `start`, for a worker that reports starts."""


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """A worker asks for tasks. `wait_seconds`: how long to wait for one. `request_id`: new for
    every poll, but the same when a poll without a response is repeated."""

    capabilities: frozenset[NameText] | None = None
    """Default: as registered."""
    available_capacity: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)] = 1
    wait_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    request_id: NameText | None = None


class HandedTask(msgspec.Struct, frozen=True):
    """A task to run now. Its timeout counts from here. The results that it takes from other tasks
    are among its parameters."""

    task_id: str
    task_type: str
    parameters: msgspec.Raw
    timeout_seconds: float | None
    attempt: int
    trace_id: str
    traceparent: str | None
    scheduled_for: Moment | None
    """The tick of its schedule, for the task of a schedule."""
    scheduled_tz: str | None
    """The time zone of its schedule."""

    @classmethod
    def of(cls, task: Claimed) -> HandedTask:
        """Return a claimed task as a worker gets it."""
        return cls(
            task.task_id,
            task.type,
            msgspec.Raw(task.payload),
            task.timeout,
            task.attempt,
            task.trace_id,
            task.spec.traceparent,
            iso_of_or_none(task.spec.tick),
            task.spec.zone,
        )


class PollReply(msgspec.Struct, frozen=True):
    """The tasks for a poll."""

    tasks: list[HandedTask]


class TaskStart(msgspec.Struct, frozen=True):
    """A task starts now."""

    task_id: TaskId
    attempt: Attempt | None = None


class TaskProgress(msgspec.Struct, frozen=True):
    """The progress of a task."""

    task_id: TaskId
    attempt: Attempt | None = None
    progress_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    status_message: str | None = None


class ResultStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"


class RunFailure(msgspec.Struct, frozen=True):
    """Why a run failed. `details` may be any JSON: it is kept as text, like a traceback."""

    message: str = "The worker gave no reason."
    code: str | None = None
    retriable: bool = True
    details: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    task_id: TaskId
    attempt: Attempt | None = None
    status: ResultStatus
    result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    error: RunFailure | None = None
    execution_duration_seconds: Seconds | None = None

    def outcome(self) -> Outcome:
        """Return the outcome for the core."""
        if self.status is ResultStatus.COMPLETED:
            return completed(self.result)
        fault = RunFailure() if self.error is None else self.error
        details = _checked(bytes(fault.details) or b"null", "field `error.details`")
        error = TaskError.of(
            fault.message,
            fault.code,
            retriable=fault.retriable,
            traceback=None if details == b"null" else details.decode(),
        )
        return Failed(error)


class Acknowledged(msgspec.Struct, frozen=True):
    """The call was recorded."""

    acknowledged: bool = True


class ResultAcknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """The result was recorded. `status`: the status of the task now."""

    acknowledged: bool = True
    status: State


class OwnStatus(StrEnum):
    """The statuses that a worker may report."""

    ACTIVE = WorkerStatus.ACTIVE.value
    DRAINING = WorkerStatus.DRAINING.value
    UNHEALTHY = WorkerStatus.UNHEALTHY.value


class ListedRun(msgspec.Struct, frozen=True):
    """A task that a worker has. Without `attempt`: whichever run of it the worker holds."""

    task_id: TaskId
    attempt: Attempt | None = None


class Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat. `current_load`: how many tasks a worker runs that holds tasks ahead; for others
    the server counts what they hold. `health`: anything about CPU, memory and so on. `tasks`: all
    tasks that the worker has and whose result was not acknowledged yet.
    What the worker holds and does not list in two heartbeats goes to other workers."""

    current_load: Annotated[int, msgspec.Meta(ge=0, le=limits.CONCURRENCY)] | None = None
    status: OwnStatus | None = None
    health: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": ["object", "null"]})] = (
        msgspec.field(default_factory=msgspec.Raw)
    )
    tasks: Annotated[tuple[ListedRun, ...], msgspec.Meta(max_length=MOST_AT_ONCE)] | None = None

    def checked_health(self) -> Mapping[str, Any] | None:
        """Return the health. Raises InvalidWorker."""
        raw = bytes(self.health) or b"null"
        if len(raw) > _HEALTH_ROOM:  # nothing is built from what cannot be kept anyway
            raise InvalidWorker(
                f"A worker's health has at most {limits.HEALTH_BYTES:,} bytes of JSON."
            )
        try:
            check_json(raw)
        except TooDeep:
            raise InvalidWorker(
                f"A worker's health is nested at most {limits.JSON_DEPTH} levels deep: flatten it."
            ) from None
        except NotJson as error:
            raise InvalidWorker(f"A worker's health is not valid JSON: {error}.") from None
        health: Any = build(raw)
        if health is None or isinstance(health, dict):
            return health
        raise InvalidWorker("A worker's health is a JSON object.")

    def checked_tasks(self) -> tuple[ListedRun, ...] | None:
        """Return the tasks. Raises InvalidTaskId."""
        if self.tasks:
            checked_all([each.task_id for each in self.tasks], MOST_AT_ONCE)
        return self.tasks


class HeartbeatReply(msgspec.Struct, frozen=True):
    """`should_drain`: stop polling, finish running tasks, deregister. `cancelled`: tasks to stop,
    because this worker has lost them; report their end anyway, which frees their slot."""

    acknowledged: bool
    should_drain: bool
    cancelled: list[str]


class Deregistered(msgspec.Struct, frozen=True, kw_only=True):
    """The worker was removed. `released`: how many of its tasks go to other workers."""

    acknowledged: bool = True
    released: int


def completed(result: msgspec.Raw) -> Completed:
    """Return the outcome of a run with this result. Raises InvalidResult or ResultTooLarge."""
    return Completed(plain(_checked(bytes(result) or b"null"), codec=True))


def _checked(value: bytes, what: str = "result") -> bytes:
    """Return JSON, byte for byte. Raises InvalidResult or ResultTooLarge, which name `what`: raw
    values were not decoded with their request."""
    if len(value) > limits.RESULT_BYTES:
        raise ResultTooLarge(
            f"The {what} has {len(value):,} bytes of JSON, at most {limits.RESULT_BYTES:,} are "
            "kept: store it elsewhere and report a reference to it."
        )
    try:
        check_json(value)
    except NotJson as error:
        raise InvalidResult(f"The {what} is not valid JSON: {error}.") from None
    except TooDeep:
        raise InvalidResult(
            f"The {what} is nested more than {limits.JSON_DEPTH} levels deep: flatten it."
        ) from None
    return value


def line(message: str | None) -> str | None:
    """Return a status message, cut to its maximum length."""
    return None if message is None else storable(message, limits.PROGRESS_CHARACTERS)
