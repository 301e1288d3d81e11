"""Tasks as `/api/v1` and `--json` show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.filters import Page
from fairlane.core.history import Step, history_of
from fairlane.core.model import Attempt, Progress, Task, TaskError, microseconds_of
from fairlane.core.priority import MICROSECONDS, shown_as
from fairlane.core.states import State
from fairlane.core.why import Reason
from fairlane.wire.policies import RetryView
from fairlane.wire.times import Moment, iso, iso_or_none
from fairlane.wire.values import TaskId

Object = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""A JSON object, to the letter as it was sent."""


class ErrorView(msgspec.Struct, frozen=True):
    """Why a run failed."""

    message: str
    code: str | None
    retriable: bool
    reason: str | None
    traceback: str | None


class AttemptView(msgspec.Struct, frozen=True):
    """A run that is over. `started_at` is null when it was given back unstarted."""

    number: int
    worker_id: str | None
    started_at: Moment | None
    ended_at: Moment
    outcome: str
    error: ErrorView | None


class ProgressView(msgspec.Struct, frozen=True):
    """What a running task last said of itself."""

    percent: float | None
    message: str | None
    updated_at: Moment


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A task without what can be large: for lists that are looked at again and again."""

    task_id: str
    task_type: str
    queue: str
    priority: str | int
    effective_priority: str | int
    status: State
    attempt: int
    retry_count: int
    max_retries: int
    timeout_seconds: float | None
    required_capabilities: tuple[str, ...]
    created_at: Moment
    run_at: Moment
    ready_at: Moment
    claimed_at: Moment | None
    started_at: Moment | None
    completed_at: Moment | None
    updated_at: Moment
    next_retry_at: Moment | None
    expires_at: Moment | None
    assigned_worker_id: str | None
    version: int
    error: ErrorView | None
    progress: ProgressView | None
    tags: Mapping[str, str]
    idempotency_key: str | None
    trace_id: str
    traceparent: str | None
    retry_policy: RetryView
    returns: int
    """How often a worker died that held it unstarted."""
    depends_on: tuple[str, ...] | None
    on_parent_failure: OnParentFailure
    workflow_id: str | None
    schedule_id: str | None


class TaskView(TaskSummary, frozen=True, kw_only=True):
    """A task, with everything there is to know about it."""

    parameters: Object
    result: msgspec.Raw
    attempts: tuple[AttemptView, ...]


S = TypeVar("S", bound=TaskSummary)


class StepView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state that a task entered."""

    state: State
    timestamp: Moment
    worker_id: str | None = None
    attempt: int | None = None
    reason: str | None = None


class TaskDetail(TaskView, frozen=True, kw_only=True):
    """A task, and on request how it came to be as it is."""

    state_history: tuple[StepView, ...] | msgspec.UnsetType = msgspec.UNSET
    current_state_duration_seconds: float | msgspec.UnsetType = msgspec.UNSET


class TaskPage(msgspec.Struct, frozen=True):
    """Tasks, newest first. A page may be short, or even empty, although there is more: go on while
    there is a `next_cursor`."""

    tasks: tuple[TaskView, ...]
    next_cursor: str | None


class SummaryPage(msgspec.Struct, frozen=True):
    """Tasks in short, newest first. As with `TaskPage`, go on while there is a `next_cursor`."""

    tasks: tuple[TaskSummary, ...]
    next_cursor: str | None


class TaskLookup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tasks to look at, up to 1,000."""

    task_ids: Annotated[
        tuple[TaskId, ...], msgspec.Meta(extra_json_schema={"maxItems": limits.SUBMIT_BATCH})
    ]


class TasksFound(msgspec.Struct, frozen=True):
    """Tasks in the order they were asked for; null for one that is not there."""

    tasks: tuple[TaskView | None, ...]


class TaskResult(msgspec.Struct, frozen=True):
    """What became of a task; `result` and `error` are null while it has not ended."""

    status: State
    result: msgspec.Raw
    error: ErrorView | None


class ReasonView(msgspec.Struct, frozen=True):
    """A reason: a code for programs, a sentence for people."""

    code: str
    message: str


class WhyView(msgspec.Struct, frozen=True):
    """Why a waiting task waits, the decisive reasons first; empty for one that does not."""

    reasons: tuple[ReasonView, ...]


def task_of(task: Task) -> TaskView:
    """A task as it stands."""
    return _shown(TaskView, task, **_large(task))


def detail_of(task: Task, now: int | None = None) -> TaskDetail:
    """A task; with its history if it is known what time it is for the store."""
    detail = _shown(TaskDetail, task, **_large(task))
    if now is None:
        return detail
    steps = history_of(task)
    spent = max(0, now - microseconds_of(steps[-1].at)) / MICROSECONDS
    return msgspec.structs.replace(
        detail,
        state_history=tuple(_step(step) for step in steps),
        current_state_duration_seconds=spent,
    )


def page_of(page: Page) -> TaskPage:
    """A page of tasks."""
    return TaskPage(tuple(map(task_of, page.tasks)), page.next_cursor)


def summaries_of(page: Page) -> SummaryPage:
    """A page of tasks in short."""
    tasks = tuple(_shown(TaskSummary, task, error=_brief(task.error)) for task in page.tasks)
    return SummaryPage(tasks, page.next_cursor)


def result_of(task: Task) -> TaskResult:
    """What became of a task."""
    return TaskResult(task.status, _raw(task.result), error_of(task.error))


def why_of(reasons: list[Reason]) -> WhyView:
    """Why it waits."""
    return WhyView(tuple(ReasonView(each.code, each.message) for each in reasons))


def error_of(error: TaskError | None) -> ErrorView | None:
    """Why a run failed."""
    if error is None:
        return None
    return ErrorView(error.message, error.code, error.retriable, error.reason, error.traceback)


def _large(task: Task) -> dict[str, Any]:
    """What only those get who look at one task, or ask for all there is."""
    return {
        "parameters": msgspec.Raw(task.payload),
        "result": _raw(task.result),
        "attempts": tuple(map(_attempt, task.attempts)),
        "error": error_of(task.error),
    }


def _brief(error: TaskError | None) -> ErrorView | None:
    """Why a run failed, without where."""
    known = error_of(error)
    return None if known is None else msgspec.structs.replace(known, traceback=None)


def _shown(kind: type[S], task: Task, **further: Any) -> S:
    return kind(
        task_id=task.task_id,
        task_type=task.type,
        queue=task.queue,
        priority=shown_as(task.priority),
        effective_priority=shown_as(task.effective_priority),
        status=task.status,
        attempt=task.attempt,
        retry_count=task.retry_count,
        max_retries=task.max_retries,
        timeout_seconds=task.timeout_seconds,
        required_capabilities=task.required_capabilities,
        created_at=iso(task.created_at),
        run_at=iso(task.run_at),
        ready_at=iso(task.ready_at),
        claimed_at=iso_or_none(task.claimed_at),
        started_at=iso_or_none(task.started_at),
        completed_at=iso_or_none(task.completed_at),
        updated_at=iso(task.updated_at),
        next_retry_at=iso_or_none(task.next_retry_at),
        expires_at=iso_or_none(task.expires_at),
        assigned_worker_id=task.assigned_worker_id,
        version=task.version,
        progress=progress_of(task.progress),
        tags=task.tags,
        idempotency_key=task.idempotency_key,
        trace_id=task.trace_id,
        traceparent=task.traceparent,
        retry_policy=RetryView.of(task.retry),
        returns=task.returns,
        depends_on=task.depends_on or None,
        on_parent_failure=OnParentFailure.CONTINUE if task.tolerant else OnParentFailure.CANCEL,
        workflow_id=task.workflow_id,
        schedule_id=task.schedule_id,
        **further,
    )


def _attempt(run: Attempt) -> AttemptView:
    return AttemptView(
        run.number,
        run.worker_id,
        iso_or_none(run.started_at),
        iso(run.ended_at),
        run.outcome,
        error_of(run.error),
    )


def progress_of(progress: Progress | None) -> ProgressView | None:
    if progress is None:
        return None
    return ProgressView(progress.percent, progress.message, iso(progress.updated_at))


def _step(step: Step) -> StepView:
    return StepView(step.state, iso(step.at), step.worker_id, step.attempt, step.reason)


def _raw(stored: bytes | None) -> msgspec.Raw:
    return msgspec.Raw(b"null" if stored is None else stored)
