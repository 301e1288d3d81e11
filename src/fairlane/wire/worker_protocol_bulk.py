"""The worker protocol in bulk: lists in, lists out, one verdict per item.

`worker_protocol` is enough for a simple worker. One that runs many small tasks claims tasks ahead,
reports hundreds of results in one call, and gives back or postpones what it cannot run now. In both
protocols the worker reports how runs ended, and the server decides what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidResult
from fairlane.core.inputs import Input
from fairlane.core.machine import Move, Verb
from fairlane.core.model import (
    Claimed,
    Grant,
    Spec,
    TaskError,
    Verdict,
    WorkerStatus,
    microseconds_of,
)
from fairlane.core.outcomes import Failed, Outcome, Released, Snoozed, TimedOut
from fairlane.core.settlement import Settled
from fairlane.wire.policies import RetryView
from fairlane.wire.times import Moment, iso_of, iso_of_or_none, microseconds_or_none
from fairlane.wire.values import NameText, TaskId
from fairlane.wire.worker_protocol import MOST_AT_ONCE, Seconds, completed

SOME: Final = msgspec.Meta(extra_json_schema={"maxItems": limits.BATCH})
Attempt = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
BAD_RESULT: Final = "INVALID_RESULT"

UnsetType = msgspec.UnsetType
UNSET = msgspec.UNSET


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A worker asks for up to `slots` tasks to run now, and up to `ahead` more to hold, which have
    no rate or concurrency limit. `capabilities`, `queues` and `types` are as registered by default;
    null for `queues` or `types` means all."""

    request_id: NameText
    """New for every claim, but the same when a claim without a response is repeated."""
    heard: Annotated[str, msgspec.Meta(max_length=limits.NAME_LENGTH)] | None = None
    """The last request whose tasks the worker received; empty before the first. If a later request
    was granted tasks, the worker gets those."""
    slots: Annotated[int, msgspec.Meta(ge=0, le=MOST_AT_ONCE)] = 1
    ahead: Annotated[int, msgspec.Meta(ge=0, le=MOST_AT_ONCE)] = 0
    wait_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    capabilities: frozenset[NameText] | UnsetType = UNSET
    queues: frozenset[NameText] | UnsetType | None = UNSET
    types: frozenset[NameText] | UnsetType | None = UNSET


class MergedInput(msgspec.Struct, frozen=True):
    """A parameter that is the result of another task, or with `many` the list of several results.

    It is among the parameters already. In place of the result of a task that did not complete is an
    object with the key `$failed`.
    """

    many: bool = False
    nesting: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET


class ClaimedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that a worker holds. Its timeout counts from the start that the worker reports."""

    task_id: str
    task_type: str
    queue: str
    parameters: msgspec.Raw
    priority: int
    attempt: int
    retry_count: int
    max_retries: int
    returns: int
    timeout_seconds: float | None
    created_at: Moment
    ready_at: Moment
    retry_policy: RetryView
    tags: Mapping[str, str]
    trace_id: str
    traceparent: str | None
    schedule_id: str | None = None
    scheduled_for: Moment | None = None
    """The tick of its schedule, for the task of a schedule."""
    scheduled_tz: str | None = None
    """The time zone of its schedule."""
    inputs: Mapping[str, MergedInput] | None = None

    @classmethod
    def of(cls, task: Claimed) -> ClaimedTask:
        """Return a claimed task as a worker gets it."""
        spec = task.spec
        return cls(
            task_id=task.task_id,
            task_type=task.type,
            queue=task.queue,
            parameters=msgspec.Raw(task.payload),
            priority=task.level,
            attempt=task.attempt,
            retry_count=task.retry_count,
            max_retries=task.max_retries,
            returns=task.returns,
            timeout_seconds=task.timeout,
            created_at=iso_of(task.created_at),
            ready_at=iso_of(task.ready_at),
            retry_policy=RetryView.of(spec.retry),
            tags=spec.tags,
            trace_id=task.trace_id,
            traceparent=spec.traceparent,
            schedule_id=spec.schedule_id,
            scheduled_for=iso_of_or_none(spec.tick),
            scheduled_tz=spec.zone,
            inputs={
                name: MergedInput(each.many, each.nesting or msgspec.UNSET)
                for name, each in spec.inputs.items()
            }
            or None,
        )

    def claimed(self, worker_id: str) -> Claimed:
        """Return the same for the core, held by a worker."""
        return Claimed(
            task_id=self.task_id,
            attempt=self.attempt,
            worker_id=worker_id,
            type=self.task_type,
            queue=self.queue,
            level=self.priority,
            payload=bytes(self.parameters),
            retry_count=self.retry_count,
            max_retries=self.max_retries,
            returns=self.returns,
            timeout=self.timeout_seconds,
            created_at=microseconds_of(datetime.fromisoformat(self.created_at)),
            ready_at=microseconds_of(datetime.fromisoformat(self.ready_at)),
            spec=Spec(
                retry=self.retry_policy.policy(),
                tags=dict(self.tags),
                trace_id=self.trace_id,
                traceparent=self.traceparent,
                schedule_id=self.schedule_id,
                tick=microseconds_or_none(self.scheduled_for),
                zone=self.scheduled_tz,
                inputs={
                    # Whose results they are does not matter any more.
                    name: Input((), each.many, nesting=each.nesting or ())
                    for name, each in (self.inputs or {}).items()
                },
            ),
        )


class ClaimAnswer(msgspec.Struct, frozen=True):
    """The tasks of a claim. `next_due_in_seconds`: when there may be more, if that is known.
    `request_id`: the earlier request that these tasks were granted to."""

    tasks: tuple[ClaimedTask, ...]
    next_due_in_seconds: float | None
    request_id: str | None = None

    @classmethod
    def of(cls, grant: Grant) -> ClaimAnswer:
        """Return a grant as a worker gets it."""
        return cls(tuple(map(ClaimedTask.of, grant.tasks)), grant.next_due_in, grant.request_id)

    def grant(self, worker_id: str) -> Grant:
        """Return the same for the core, held by a worker."""
        tasks = [task.claimed(worker_id) for task in self.tasks]
        return Grant(tasks, self.next_due_in_seconds, self.request_id)


class StartReport(msgspec.Struct, frozen=True):
    """A task started `seconds` ago."""

    task_id: TaskId
    attempt: Attempt
    seconds: Seconds = 0.0


class StartReports(msgspec.Struct, frozen=True):
    """Tasks that have started."""

    starts: Annotated[tuple[StartReport, ...], SOME]


class ProgressReport(msgspec.Struct, frozen=True):
    """The progress of a task."""

    task_id: TaskId
    attempt: Attempt
    progress_percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    status_message: str | None = None


class ProgressReports(msgspec.Struct, frozen=True):
    """The progress of tasks."""

    reports: Annotated[tuple[ProgressReport, ...], SOME]


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    RELEASED = "released"
    """Given back, started or not: that costs no retry."""
    SNOOZED = "snoozed"
    """To run again in `after_seconds`: that costs no retry."""


class RunError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run failed."""

    message: str = "The worker gave no reason."
    code: str | None = None
    retriable: bool = True
    traceback: str | None = None


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. `after_seconds`: when to run again, if the handler says so.

    Without `execution_duration_seconds` the run had not started.
    """

    task_id: TaskId
    attempt: Attempt
    status: RunStatus
    result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    error: RunError | None = None
    after_seconds: Seconds | None = None
    execution_duration_seconds: Seconds | None = None

    @property
    def size(self) -> int:
        """How large the result or the texts of the error are."""
        error = self.error or RunError()
        return memoryview(self.result).nbytes + len(error.message) + len(error.traceback or "")

    def outcome(self) -> Outcome:
        """Return the outcome for the core. An invalid result is a permanent failure: an error would
        fail the whole batch."""
        match self.status:
            case RunStatus.COMPLETED:
                try:
                    return completed(self.result)
                except InvalidResult as error:
                    return Failed(TaskError.of(error.message, BAD_RESULT, retriable=False))
            case RunStatus.FAILED:
                given = RunError() if self.error is None else self.error
                failure = TaskError.of(
                    given.message,
                    given.code,
                    retriable=given.retriable,
                    traceback=given.traceback,
                )
                return Failed(failure, self.after_seconds)
            case RunStatus.TIMED_OUT:
                return TimedOut()
            case RunStatus.RELEASED:
                return Released()
            case RunStatus.SNOOZED:
                return Snoozed(self.after_seconds or 0.0)


class EndedRuns(msgspec.Struct, frozen=True):
    """How runs ended."""

    results: Annotated[tuple[EndedRun, ...], SOME]


class Verdicts(msgspec.Struct, frozen=True):
    """The verdict on each item, in order: `stale` if the worker has lost the task, `missing` if the
    task does not exist any more."""

    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> Verdicts:
        return cls(tuple(verdicts))


class MoveView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the store did with a task whose run ended. `after_seconds`: until its next run. `run`:
    what the run counts as, if it did not complete."""

    verb: str
    reason: str = ""
    after_seconds: float = 0.0
    run: str | None = None

    @classmethod
    def of(cls, move: Move) -> MoveView:
        run = None if move.verb is Verb.COMPLETE else move.run
        return cls(move.verb, move.label, move.after, run)


class Results(msgspec.Struct, frozen=True):
    """What became of each result, in order, and how its task moved on: null if it was refused."""

    verdicts: tuple[Verdict, ...]
    moves: tuple[MoveView | None, ...]

    @classmethod
    def of(cls, settled: Sequence[Settled]) -> Results:
        return cls(
            tuple(verdict for verdict, _ in settled),
            tuple(None if move is None else MoveView.of(move) for _, move in settled),
        )

    def __add__(self, more: Results) -> Results:
        return Results(self.verdicts + more.verdicts, self.moves + more.moves)


class HeldRun(msgspec.Struct, frozen=True):
    """A run."""

    task_id: TaskId
    attempt: Attempt


class ListHoldings(msgspec.Struct, frozen=True):
    """A worker asks which runs it holds by the store's word. `cursor`: from the page before."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.BATCH)] = limits.BATCH
    cursor: str | None = None


class HoldingsView(msgspec.Struct, frozen=True):
    """A page of the runs that a worker holds, about as long as asked for. `cursor`: ask again with
    it, there may be more."""

    runs: tuple[HeldRun, ...]
    cursor: str | None


class CountCompletions(msgspec.Struct, frozen=True):
    """A worker that fails asks whether others do better. `queues`: null means all."""

    types: Annotated[tuple[NameText, ...], SOME]
    queues: frozenset[NameText] | None = None


class CompletionsView(msgspec.Struct, frozen=True):
    """How many runs of each type have ever completed."""

    completed: Mapping[str, int]


class DisownedRuns(msgspec.Struct, frozen=True):
    """Runs that a worker does not have, although it holds them by the store's word."""

    runs: Annotated[tuple[HeldRun, ...], SOME]


class PulseView(msgspec.Struct, frozen=True):
    """`remaining_seconds`: how long the worker counts as alive, from when it sent the heartbeat.
    `let_go`: runs to stop, because this worker has lost them; report their end anyway, which frees
    their slot."""

    remaining_seconds: float
    status: WorkerStatus
    let_go: tuple[HeldRun, ...]
