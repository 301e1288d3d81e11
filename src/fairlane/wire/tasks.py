"""Tasks as `/api/v1` and `--json` show them.

`FIELDS` is the only place that knows which field of the API is which field of the core. The server
encodes with it, the HTTP engine decodes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.filters import Page
from fairlane.core.history import Step, history_of
from fairlane.core.model import Task, microseconds_of
from fairlane.core.priority import MICROSECONDS, level_of, shown_as
from fairlane.core.states import State
from fairlane.core.why import Reason
from fairlane.wire.policies import RetryView
from fairlane.wire.runs import (
    AttemptView,
    ErrorView,
    ProgressView,
    decode_attempts,
    decode_error,
    decode_progress,
    encode_attempts,
    encode_error,
    encode_progress,
)
from fairlane.wire.times import Moment, iso, iso_or_none, time_of, time_or_none
from fairlane.wire.values import TaskId

Object = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""A JSON object, byte for byte as it was sent."""


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A task without its large fields: for lists that are read often."""

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
    """How often a worker died that held the task unstarted."""
    depends_on: tuple[str, ...] | None
    on_parent_failure: OnParentFailure
    workflow_id: str | None
    schedule_id: str | None


class TaskView(TaskSummary, frozen=True, kw_only=True):
    """Everything about a task."""

    parameters: Object
    result: msgspec.Raw
    attempts: tuple[AttemptView, ...]


class Field(NamedTuple):
    """A field of the API, its name in the core, and how values are converted, if they are."""

    public: str
    core: str
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


def _raw(stored: bytes | None) -> msgspec.Raw:
    return msgspec.Raw(b"null" if stored is None else stored)


FIELDS: Final = (
    Field("task_id", "task_id"),
    Field("task_type", "type"),
    Field("queue", "queue"),
    Field("priority", "level", shown_as, level_of),
    Field("effective_priority", "effective_level", shown_as, level_of),
    Field("status", "state"),
    Field("attempt", "attempt"),
    Field("retry_count", "retry_count"),
    Field("max_retries", "max_retries"),
    Field("timeout_seconds", "timeout"),
    Field("required_capabilities", "capabilities"),
    Field("created_at", "created_at", iso, time_of),
    Field("run_at", "run_at", iso, time_of),
    Field("ready_at", "ready_at", iso, time_of),
    Field("claimed_at", "claimed_at", iso_or_none, time_or_none),
    Field("started_at", "started_at", iso_or_none, time_or_none),
    Field("completed_at", "completed_at", iso_or_none, time_or_none),
    Field("updated_at", "updated_at", iso, time_of),
    Field("next_retry_at", "next_retry_at", iso_or_none, time_or_none),
    Field("expires_at", "expires_at", iso_or_none, time_or_none),
    Field("assigned_worker_id", "worker_id"),
    Field("version", "version"),
    Field("error", "error", encode_error, decode_error),
    Field("progress", "progress", encode_progress, decode_progress),
    Field("tags", "tags"),
    Field("idempotency_key", "idempotency_key"),
    Field("trace_id", "trace_id"),
    Field("traceparent", "traceparent"),
    Field("retry_policy", "retry", RetryView.of, RetryView.policy),
    Field("returns", "returns"),
    Field("depends_on", "depends_on", lambda ids: ids or None, lambda ids: ids or ()),
    Field(
        "on_parent_failure",
        "tolerant",
        lambda tolerant: OnParentFailure.CONTINUE if tolerant else OnParentFailure.CANCEL,
        lambda shown: shown is OnParentFailure.CONTINUE,
    ),
    Field("workflow_id", "workflow_id"),
    Field("schedule_id", "schedule_id"),
    Field("parameters", "payload", msgspec.Raw, bytes),
    Field("result", "result", _raw, bytes),
    Field("attempts", "attempts", encode_attempts, decode_attempts),
)
LARGE: Final = frozenset({"parameters", "result", "attempts"})
"""The fields that summaries do not have."""


def _encoder(fields: Iterable[Field]) -> Callable[[Task], dict[str, Any]]:
    fields = tuple(fields)
    read = attrgetter(*(field.core for field in fields))

    def encode(task: Task) -> dict[str, Any]:
        return {
            field.public: value if field.encode is None else field.encode(value)
            for field, value in zip(fields, read(task), strict=True)
        }

    return encode


_encode_all: Final = _encoder(FIELDS)
_encode_summary: Final = _encoder(field for field in FIELDS if field.public not in LARGE)
_read_public: Final = attrgetter(*(field.public for field in FIELDS))


def encode_task(task: Task) -> TaskView:
    """Return a task as JSON shows it."""
    return TaskView(**_encode_all(task))


def decode_task(view: TaskView) -> Task:
    """Return the task that JSON shows."""
    values = {
        field.core: value if field.decode is None else field.decode(value)
        for field, value in zip(FIELDS, _read_public(view), strict=True)
    }
    if values["result"] == b"null" and view.status is not State.COMPLETED:
        values["result"] = None  # null is a result only of a completed task
    return Task(**values)


def encode_summary(task: Task) -> TaskSummary:
    """Return a task without its large fields, and without the traceback of its error."""
    values = _encode_summary(task)
    if values["error"] is not None:
        values["error"] = msgspec.structs.replace(values["error"], traceback=None)
    return TaskSummary(**values)


class StepView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state that a task entered."""

    state: State
    timestamp: Moment
    worker_id: str | None = None
    attempt: int | None = None
    reason: str | None = None


class TaskDetail(TaskView, frozen=True, kw_only=True):
    """Everything about a task, and its history if that was asked for."""

    state_history: tuple[StepView, ...] | msgspec.UnsetType = msgspec.UNSET
    current_state_duration_seconds: float | msgspec.UnsetType = msgspec.UNSET


class TaskPage(msgspec.Struct, frozen=True):
    """Tasks, newest first. A page may be short, or even empty, although there are more: continue
    while there is a `next_cursor`."""

    tasks: tuple[TaskView, ...]
    next_cursor: str | None


class SummaryPage(msgspec.Struct, frozen=True):
    """Summaries of tasks, newest first. As with `TaskPage`, continue while there is a
    `next_cursor`."""

    tasks: tuple[TaskSummary, ...]
    next_cursor: str | None


class TaskLookup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ids of up to 1,000 tasks."""

    task_ids: Annotated[
        tuple[TaskId, ...], msgspec.Meta(extra_json_schema={"maxItems": limits.SUBMIT_BATCH})
    ]


class TasksFound(msgspec.Struct, frozen=True):
    """Tasks in the order of the request; null for one that does not exist."""

    tasks: tuple[TaskView | None, ...]


class TaskResult(msgspec.Struct, frozen=True):
    """The result of a task; `result` and `error` are null until it has ended."""

    status: State
    result: msgspec.Raw
    error: ErrorView | None


class ReasonView(msgspec.Struct, frozen=True):
    """A reason: a code for programs, a sentence for people."""

    code: str
    message: str


class WhyView(msgspec.Struct, frozen=True):
    """Why a waiting task waits, the decisive reasons first; empty for one that does not wait."""

    reasons: tuple[ReasonView, ...]


def detail_of(task: Task, now: int | None = None) -> TaskDetail:
    """Return a task with its history, if `now`, the store's time, is given."""
    detail = TaskDetail(**_encode_all(task))
    if now is None:
        return detail
    steps = history_of(task)
    spent = max(0, now - microseconds_of(steps[-1].at)) / MICROSECONDS
    return msgspec.structs.replace(
        detail,
        state_history=tuple(map(_step, steps)),
        current_state_duration_seconds=spent,
    )


def page_of(page: Page) -> TaskPage:
    """Return a page of tasks."""
    return TaskPage(tuple(map(encode_task, page.tasks)), page.next_cursor)


def summaries_of(page: Page) -> SummaryPage:
    """Return a page of summaries."""
    return SummaryPage(tuple(map(encode_summary, page.tasks)), page.next_cursor)


def result_of(task: Task) -> TaskResult:
    """Return the result of a task."""
    return TaskResult(task.state, _raw(task.result), encode_error(task.error))


def why_of(reasons: list[Reason]) -> WhyView:
    """Return why a task waits."""
    return WhyView(tuple(ReasonView(each.code, each.message) for each in reasons))


def _step(step: Step) -> StepView:
    return StepView(step.state, iso(step.at), step.worker_id, step.attempt, step.reason)
