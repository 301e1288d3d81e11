"""The worker protocol, `/internal/workers`: what workers in any language say and are told.

Fields that are not known are passed over, so that a worker may be newer than the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidPayload, InvalidResult, InvalidWorker, ResultTooLarge
from fairlane.core.model import Claimed, NewWorker, TaskError, WorkerStatus
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.states import State
from fairlane.core.submission import check_tree, may_be_deep
from fairlane.core.text import storable
from fairlane.wire.values import Capacity, Line, NameText, TaskId, WorkerName

POLL_INTERVAL_MS: Final = 1_000
HEARTBEAT_INTERVAL_MS: Final = 30_000
BEATS_A_LEASE: Final = 3
"""A worker that was silent for so many intervals is dead."""
MOST_AT_ONCE: Final = 10_000
HEALTH_BYTES: Final = 4_096

_LONGEST_INTERVAL_MS: Final = int(limits.LEASE_SECONDS_LONGEST * 1_000) // BEATS_A_LEASE

Seconds = Annotated[float, msgspec.Meta(ge=0, le=limits.DELAY_SECONDS)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A worker introduces itself. Without `queues` or `types` it takes tasks of all of them."""

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
    """How long it may be silent; three heartbeat intervals if left out."""
    name: WorkerName | None = None
    """What its id is to begin with."""
    worker_id: str | None = None
    """The id that it has been given before, if it only renews itself."""

    def worker(self, worker_id: str) -> NewWorker:
        """The worker under the id it was given."""
        for names in (self.capabilities, self.queues or (), self.types or ()):
            if len(names) > limits.LANES:
                raise InvalidWorker(f"A worker names at most {limits.LANES:,} of each kind.")
        return NewWorker(
            worker_id,
            capacity=self.capacity,
            capabilities=self.capabilities,
            queues=self.queues,
            types=self.types,
            host=self.host,
            version=self.version,
            lease=self._lease(),
        )

    def _lease(self) -> float:
        if self.lease_seconds is not None:
            return self.lease_seconds
        return BEATS_A_LEASE * self.heartbeat_interval_ms / 1_000


class Registered(msgspec.Struct, frozen=True):
    """The id under which a worker makes all its other calls, and how often it should."""

    worker_id: str
    poll_interval_ms: int
    heartbeat_interval_ms: int


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """A worker wants tasks. `wait_seconds`: how long it would wait for one. `request_id`: a text
    that is new for every poll but the same when an unanswered one is repeated."""

    capabilities: frozenset[NameText] | None = None
    """What it can do now; as registered if left out."""
    available_capacity: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)] = 1
    wait_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    request_id: NameText | None = None


class HandedTask(msgspec.Struct, frozen=True):
    """A task to be run now. Its time limit counts from here."""

    task_id: str
    task_type: str
    parameters: msgspec.Raw
    timeout_seconds: float | None
    attempt: int
    trace_id: str
    traceparent: str | None

    @classmethod
    def of(cls, task: Claimed) -> HandedTask:
        """A claimed task as a worker gets it."""
        return cls(
            task.task_id,
            task.type,
            msgspec.Raw(task.payload),
            task.timeout,
            task.attempt,
            task.trace_id,
            task.spec.traceparent,
        )


class PollReply(msgspec.Struct, frozen=True):
    """What a poll brought."""

    tasks: list[HandedTask]


class TaskStart(msgspec.Struct, frozen=True):
    """A task begins to run only now."""

    task_id: TaskId
    attempt: Attempt | None = None


class TaskProgress(msgspec.Struct, frozen=True):
    """How far a task has come."""

    task_id: TaskId
    attempt: Attempt | None = None
    progress_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    status_message: str | None = None


class ResultStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"


class RunFailure(msgspec.Struct, frozen=True):
    """Why a run failed. `details` may be any JSON: they are kept as text, beside a traceback."""

    message: str = "The worker gave no reason."
    code: str | None = None
    retriable: bool = True
    details: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run."""

    task_id: TaskId
    attempt: Attempt | None = None
    status: ResultStatus
    result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    error: RunFailure | None = None
    execution_duration_seconds: Seconds | None = None

    def outcome(self) -> Outcome:
        """The same in the core's words."""
        if self.status is ResultStatus.COMPLETED:
            return Completed(checked_result(bytes(self.result) or b"null"))
        fault = RunFailure() if self.error is None else self.error
        details = checked_result(bytes(fault.details) or b"null")
        error = TaskError.of(
            fault.message,
            fault.code,
            retriable=fault.retriable,
            traceback=None if details == b"null" else details.decode(),
        )
        return Failed(error)


class Acknowledged(msgspec.Struct, frozen=True):
    """A call was heard."""

    acknowledged: bool = True


class ResultAcknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """A result was recorded. `status`: how the task stands now."""

    acknowledged: bool = True
    status: State


class OwnStatus(StrEnum):
    """What a worker may say of itself."""

    ACTIVE = WorkerStatus.ACTIVE.value
    DRAINING = WorkerStatus.DRAINING.value
    UNHEALTHY = WorkerStatus.UNHEALTHY.value


class Heartbeat(msgspec.Struct, frozen=True):
    """A sign of life. `health`: anything about cpu, memory and the like."""

    current_load: Annotated[int, msgspec.Meta(ge=0, le=limits.CONCURRENCY)] = 0
    status: OwnStatus | None = None
    health: Mapping[str, Any] | None = None

    def checked_health(self) -> Mapping[str, Any] | None:
        """Its health, if it is short enough to be kept."""
        if self.health and len(msgspec.json.encode(self.health)) > HEALTH_BYTES:
            raise InvalidWorker(f"A worker's health has at most {HEALTH_BYTES:,} bytes of JSON.")
        return self.health


class HeartbeatReply(msgspec.Struct, frozen=True):
    """`should_drain`: poll no more, finish what runs, deregister. `cancelled`: tasks to stop, for
    they are no longer this worker's; report their end all the same, which frees their place."""

    acknowledged: bool
    should_drain: bool
    cancelled: list[str]


class Deregistered(msgspec.Struct, frozen=True, kw_only=True):
    """A worker has left. `released`: how many tasks it still had, which go to others."""

    acknowledged: bool = True
    released: int


def checked_result(value: bytes) -> bytes:
    """JSON as it was sent, if others can read it too: of a raw value only the outline was looked
    at when the request was."""
    if len(value) > limits.RESULT_BYTES:
        raise ResultTooLarge(
            f"The result has {len(value):,} bytes of JSON, at most {limits.RESULT_BYTES:,} are "
            "kept: store it elsewhere and report a reference to it."
        )
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidResult(f"The result is not valid JSON: {error}.") from None
    try:
        if may_be_deep(value):
            check_tree(decoded, limits.JSON_DEPTH)
    except InvalidPayload:
        raise InvalidResult(
            f"The result is nested more than {limits.JSON_DEPTH} levels deep: flatten it."
        ) from None
    return value


def line(message: str | None) -> str | None:
    """A status message cut to size."""
    return None if message is None else storable(message, limits.PROGRESS_CHARACTERS)
