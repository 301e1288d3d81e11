"""What flows through the system: frozen structs that know no engine.

Times are datetimes in UTC where a user reads them (`Task`, `Worker`, `Event`) and microseconds
since 1970 where an engine computes with them. Payloads and results are JSON as bytes: checked once
at the door, stored as sent, decoded once by the handler's side.

Structs that exist by the thousand are `gc=False`: they cannot be part of a cycle, so the garbage
collector need not visit them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from fairlane.core import limits, retry
from fairlane.core.inputs import Input, TaskInput
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.text import storable
from fairlane.core.uniqueness import Hold

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: int) -> datetime:
    """Convert an engine's time to a datetime."""
    return _EPOCH + timedelta(microseconds=microseconds)


def moment_or_none(microseconds: int | None) -> datetime | None:
    """Convert an engine's time to a datetime; None stays None."""
    return None if microseconds is None else moment(microseconds)


def microseconds_of(time: datetime) -> int:
    """Convert a datetime to an engine's time."""
    return (time - _EPOCH) // timedelta(microseconds=1)


class TaskError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt failed. Text only: nothing here is ever turned back into an exception."""

    message: str
    code: str | None = None
    retriable: bool = True
    reason: str | None = None
    traceback: str | None = None

    @classmethod
    def of(
        cls,
        message: str,
        code: str | None = None,
        *,
        retriable: bool = True,
        reason: str | None = None,
        traceback: str | None = None,
    ) -> TaskError:
        """Make an error whose texts are short enough and safe to store."""
        return cls(
            message=storable(message, limits.ERROR_MESSAGE_CHARACTERS),
            code=None if code is None else storable(code, limits.NAME_LENGTH),
            retriable=retriable,
            reason=reason,
            traceback=None
            if traceback is None
            else storable(traceback, limits.TRACEBACK_CHARACTERS),
        )


class OnFailure(StrEnum):
    """What becomes of a workflow when a task of it ends badly."""

    CONTINUE = "continue"
    """What does not depend on that task goes on."""
    CANCEL = "cancel"
    """All that has not ended is cancelled, running tasks too."""


class Membership(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place of a task in its workflow: see `workflows`."""

    node: str
    """Its name there."""
    nodes: int
    """How many tasks the workflow has."""
    name: str | None = None
    """The workflow's name."""
    answers: bool = False
    """Its result is the workflow's, or one of those of which the workflow's is a list."""
    on_failure: OnFailure = OnFailure.CONTINUE
    """What becomes of the workflow when a task of it ends badly."""
    on_exit: bool = False
    """It runs when all others have ended, whatever became of them."""


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a task that is fixed at submission and that no engine computes with."""

    retry: RetryPolicy = retry.DEFAULT
    tags: dict[str, str] = {}
    trace_id: str | None = None
    traceparent: str | None = None
    workflow_id: str | None = None
    schedule_id: str | None = None
    depends_on: tuple[str, ...] = ()
    tolerant: bool = False
    """It goes on even if a task it depends on did not complete."""
    timed: bool = False
    """The submitter named its timeout, so that the one of its type does not count."""
    dated: bool = False
    """The submitter named the time at which it is due, which no step of the clock changes."""
    owner: str | None = None
    """The subject of the token that it was submitted with."""
    tick: int | None = None
    """The moment of its schedule that it was submitted for, in microseconds."""
    zone: str | None = None
    """The time zone of its schedule."""
    inputs: dict[str, Input] = {}
    """Parameters that are results of tasks in `depends_on`."""
    membership: Membership | None = None
    """Its place in the workflow `workflow_id`."""

    def waits_for_date(self, attempt: int) -> bool:
        """Return whether a waiting task waits for the time that its submitter named."""
        return self.dated and not attempt

    def encode(self) -> bytes | None:
        """Return the spec as engines store it: None for the most common task."""
        return None if self == PLAIN else msgspec.json.encode(self)

    @staticmethod
    def decode(stored: bytes | None) -> Spec:
        """Return the spec that `encode` was given."""
        return PLAIN if stored is None else _spec_decoder.decode(stored)


PLAIN = Spec()
_spec_decoder = msgspec.json.Decoder(Spec)


class NewTask(msgspec.Struct, frozen=True, gc=False):
    """A checked submission, complete but for the engine's clock. See `submission`."""

    task_id: str
    type: str
    queue: str
    capabilities: tuple[str, ...]
    level: int
    payload: bytes
    max_retries: int
    timeout: float | None
    delay: float = 0.0
    run_at: int | None = None
    expires_at: int | None = None
    idempotency_key: str | None = None
    fingerprint: bytes | None = None
    spec: Spec = PLAIN
    unique: Hold | None = None
    matches: Callable[[bytes], bool] | None = None
    """Whether a payload in the store is this one, where that is not seen from the bytes."""
    chosen: bool = False
    """Somebody gave it its id, which a deleted task may have had: see `fences`."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Return the tasks that must end before this one may run."""
        return self.spec.depends_on


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The answer to one submission.

    `known`: nothing was stored. This is an earlier task with the same idempotency key, unique key
    or id.
    """

    task_id: str
    state: State
    created_at: int
    known: bool = False


class Ask(msgspec.Struct, frozen=True):
    """What a worker asks for: up to `slots` tasks to run now, and `ahead` more to hold.

    Tasks that are held ahead are never of types with a rate or concurrency limit. None for types or
    queues means all of them. A repeated `request_id` gets the same tasks again. `wait`: how many
    seconds a server may wait for a task before it answers; other stores never wait.

    `heard`: the last request whose answer the worker received, empty if there was none. If the
    worker was given tasks in a later request, it gets those again and no new ones, so that an
    answer that was lost leaves no task behind. None: the worker does not say.
    """

    worker_id: str
    request_id: str
    slots: int
    ahead: int = 0
    types: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    wait: float = 0.0
    heard: str | None = None

    def overlooks(self, last: str | None) -> bool:
        """Return whether the worker may have missed the tasks of its last request."""
        return last == self.request_id or (self.heard is not None and self.heard != (last or ""))


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """A task that a worker holds. `(task_id, attempt, worker_id)` is its fence."""

    task_id: str
    attempt: int
    worker_id: str
    type: str
    queue: str
    level: int
    payload: bytes
    retry_count: int
    max_retries: int
    returns: int
    timeout: float | None
    created_at: int
    ready_at: int
    spec: Spec = PLAIN

    @property
    def retry(self) -> RetryPolicy:
        """Return how long it waits between attempts."""
        return self.spec.retry

    @property
    def trace_id(self) -> str:
        """Return the trace this task belongs to: its own id unless the submitter named one."""
        return self.spec.trace_id or self.task_id.replace("-", "")


class Grant(msgspec.Struct, frozen=True):
    """The answer to an `Ask`. `next_due_in`: seconds until a claim may find more, if known.

    `request_id` is set if these are the tasks of an earlier request: its id, or empty if the store
    knows of no earlier request.
    """

    tasks: list[Claimed]
    next_due_in: float | None = None
    request_id: str | None = None


class Due(msgspec.Struct, frozen=True):
    """What is left after a batch of due tasks: `more` now, or the next one in `next_in` seconds."""

    more: bool
    next_in: float | None = None


class Cause(StrEnum):
    """Why the maintenance takes a task away from its worker."""

    LOST = "lost"
    TIMEOUT = "timeout"
    UNSTARTED = "unstarted"


class Overdue(msgspec.Struct, frozen=True):
    """An executing task to be taken from its worker, which is dead, exceeded the timeout or did not
    start the task in time; a `Standing`."""

    task_id: str
    attempt: int
    worker_id: str
    type: str
    cause: Cause
    started: bool
    retry_count: int
    max_retries: int
    returns: int
    timeout: float | None
    retry: RetryPolicy


class Verdict(StrEnum):
    """What became of one item of a fenced batch."""

    APPLIED = "applied"
    STALE = "stale"
    MISSING = "missing"


class Report(msgspec.Struct, frozen=True):
    """Progress of a running task."""

    task_id: str
    attempt: int
    percent: float | None = None
    message: str | None = None


class Start(msgspec.Struct, frozen=True):
    """A report that a held task began to run `seconds` ago."""

    task_id: str
    attempt: int
    seconds: float = 0.0


class Progress(msgspec.Struct, frozen=True):
    """The last progress that a running task reported."""

    percent: float | None
    message: str | None
    updated_at: datetime


class Attempt(msgspec.Struct, frozen=True):
    """One finished run. `started_at` is None if it never began."""

    number: int
    worker_id: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    error: TaskError | None = None


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """Times of an earlier run or replay of a task: see `trail`.

    A run has its `attempt`: the task was claimed at `happened_at`, and due again at `next_at`, or
    None if that was at once. A replay has the `version` and the `state` before it: the task had
    ended at `happened_at` (None: it waited), and was replayed at `next_at`. `ready_at` is the place
    in the queue that it had before. `waits`: a replay after which it waited for its parents.
    """

    attempt: int | None
    version: int | None
    state: State | None
    ready_at: datetime
    happened_at: datetime | None
    next_at: datetime | None
    waits: bool = False


class TaskFields(msgspec.Struct, frozen=True, kw_only=True):
    """Everything there is to know about a task but its payload and its result."""

    task_id: str
    type: str
    queue: str
    level: int
    effective_level: int
    state: State
    attempt: int
    retry_count: int
    max_retries: int
    timeout: float | None
    returns: int
    capabilities: tuple[str, ...]
    created_at: datetime
    run_at: datetime
    ready_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    next_retry_at: datetime | None
    expires_at: datetime | None
    worker_id: str | None
    version: int
    error: TaskError | None
    attempts: tuple[Attempt, ...]
    """Its runs. Of those that did not complete, the first 10 and the last 100 are kept."""
    progress: Progress | None
    tags: Mapping[str, str]
    idempotency_key: str | None
    trace_id: str
    traceparent: str | None
    retry: RetryPolicy
    workflow_id: str | None = None
    schedule_id: str | None = None
    scheduled_for: datetime | None = None
    """The tick of its schedule that it was submitted for."""
    owner: str | None = None
    depends_on: tuple[str, ...] = ()
    tolerant: bool = False
    inputs: Mapping[str, TaskInput] = {}
    """Parameters that are results of tasks it depends on. They are not in the payload."""
    membership: Membership | None = None
    """Its place in the workflow `workflow_id`."""
    trail: tuple[Past, ...] = ()
    """Times of its earlier runs and replays. Not told over HTTP: see `state_history` there."""

    # The names that the specification prints, for users of the Python API.

    @property
    def status(self) -> State:
        """Return the state."""
        return self.state

    @property
    def priority(self) -> int:
        """Return the level that the task was submitted with."""
        return self.level

    @property
    def effective_priority(self) -> int:
        """Return the level that age has raised the task to."""
        return self.effective_level

    @property
    def timeout_seconds(self) -> float | None:
        """Return how long a run may take, None for any time."""
        return self.timeout

    @property
    def required_capabilities(self) -> tuple[str, ...]:
        """Return what a worker must have to run the task."""
        return self.capabilities

    @property
    def assigned_worker_id(self) -> str | None:
        """Return the worker that runs the task, or ran it last."""
        return self.worker_id


class Task(TaskFields, frozen=True, kw_only=True):
    """A task as engines have it. Users of the Python API get `fairlane.runtime.tasks.Task`."""

    payload: bytes
    result: bytes | None


class Cancelled(msgspec.Struct, frozen=True):
    """What a cancellation found. `state` is the state before it, None if there is no such task.

    `applied` is False if the task had already ended.
    """

    task_id: str
    applied: bool
    state: State | None
    worker_id: str | None = None


class Replayed(msgspec.Struct, frozen=True):
    """What a replay found. `state` is the state before it, None if there is no such task.

    `applied` is False if the task is queued, executing or completed: there is nothing to replay.
    """

    task_id: str
    applied: bool
    state: State | None


class Deleted(msgspec.Struct, frozen=True):
    """What a deletion found. `state` is the state before it, None if there is no such task.

    `applied` is False if the task is scheduled, queued or executing: cancel it first.
    """

    task_id: str
    applied: bool
    state: State | None


class Swept(msgspec.Struct, frozen=True):
    """What became of a batch of tasks that matched a filter. `cursor`: there may be more."""

    matched: int
    applied: int
    cursor: str | None


class WorkerStatus(StrEnum):
    """Whether a worker gets tasks, and why not."""

    ACTIVE = "active"
    DRAINING = "draining"
    UNHEALTHY = "unhealthy"
    DEAD = "dead"


class NewWorker(msgspec.Struct, frozen=True):
    """A worker that registers. Its id is random for each process start, and never reused."""

    worker_id: str
    capacity: int = 10
    capabilities: frozenset[str] = frozenset()
    queues: frozenset[str] | None = None
    types: frozenset[str] | None = None
    host: str = ""
    version: str = ""
    lease: float = limits.LEASE_SECONDS
    start_within: float | None = None
    """It reports the start of every task. A task that it does not start within this time goes to
    others, at no cost. None: it may hold tasks unstarted."""


class Beat(msgspec.Struct, frozen=True):
    """A heartbeat: what the worker reports of itself. None leaves a value as it is.

    `load` is how many tasks it runs. If a worker never reports that, what it holds is counted.
    """

    worker_id: str
    load: int | None = None
    status: WorkerStatus | None = None
    health: Mapping[str, Any] | None = None


class Pulse(msgspec.Struct, frozen=True):
    """The answer to a heartbeat.

    `remaining` counts from before the heartbeat was sent; a worker that gets no further answer
    until then stops by itself. `let_go` names runs (task, attempt) that the worker has lost.
    """

    remaining: float
    status: WorkerStatus
    let_go: list[tuple[str, int]]


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the store knows it."""

    worker_id: str
    status: WorkerStatus
    capacity: int
    load: int
    current_tasks: tuple[str, ...]
    capabilities: frozenset[str]
    queues: frozenset[str] | None
    types: frozenset[str] | None
    host: str
    version: str
    health: Mapping[str, Any] | None
    lease: float
    start_within: float | None
    registered_at: datetime
    last_heartbeat: datetime
    lost: bool
    """Its lease has run out, but it is not declared dead yet."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One transition from the journal. `cursor`: continue reading after its entry."""

    cursor: str
    verb: str
    at: datetime
    task_id: str | None = None
    type: str | None = None
    queue: str | None = None
    level: int | None = None
    attempt: int | None = None
    worker_id: str | None = None
    seconds: float | None = None


class Events(msgspec.Struct, frozen=True):
    """A part of the journal. `cursor`: where to continue reading.

    `reset`: the entries after the given cursor have been deleted, so the reader missed some; these
    events are the oldest that are left.
    """

    events: list[Event]
    cursor: str
    reset: bool = False
