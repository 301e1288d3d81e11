"""Tasks as `/api/v1` and `--json` show them.

`FIELDS` is the only place that knows which field of the API is which field of the core. The server
encodes with it, the HTTP engine decodes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from fairlane.core.dependencies import OnParentFailure
from fairlane.core.inputs import TaskInput
from fairlane.core.model import Membership, Task
from fairlane.core.priority import level_of, shown_as
from fairlane.core.states import State
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
    """How often a worker died that held the task unstarted, or did not start it in time."""
    depends_on: tuple[str, ...] | None
    on_parent_failure: OnParentFailure
    inputs: Mapping[str, TaskInput] | None
    """Parameters that are results of tasks it depends on. They are not among its parameters."""
    workflow_id: str | None
    workflow: Membership | None = None
    """Its place in that workflow."""
    schedule_id: str | None
    scheduled_for: Moment | None = None
    """The tick of its schedule that it was submitted for."""
    owner: str | None
    """The subject of the token that it was submitted with."""


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


def raw_result(stored: bytes | None) -> msgspec.Raw:
    """Return a stored result as JSON, null for none."""
    return msgspec.Raw(b"null" if stored is None else stored)


ELSEWHERE: Final = frozenset({"trail"})
"""Fields of the core that are not fields of the API: see `state_history`."""

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
    Field("inputs", "inputs", lambda inputs: inputs or None, lambda inputs: inputs or {}),
    Field("workflow_id", "workflow_id"),
    Field("workflow", "membership"),
    Field("schedule_id", "schedule_id"),
    Field("scheduled_for", "scheduled_for", iso_or_none, time_or_none),
    Field("owner", "owner"),
    Field("parameters", "payload", msgspec.Raw, bytes),
    Field("result", "result", raw_result, bytes),
    Field("attempts", "attempts", encode_attempts, decode_attempts),
)
LARGE: Final = frozenset({"parameters", "result", "attempts"})
"""The fields that summaries do not have."""


Convert = Callable[[Any], dict[str, Any]]


def _converter(read: Iterable[str], write: Iterable[str], by: Iterable[Any]) -> Convert:
    """Return a function that reads these attributes, and returns them, converted, as a dict."""
    names = tuple(write)
    values_of = attrgetter(*read)
    changes = [(name, convert) for name, convert in zip(names, by, strict=True) if convert]

    def convert_all(source: Any) -> dict[str, Any]:
        values = dict(zip(names, values_of(source), strict=True))
        for name, convert in changes:
            values[name] = convert(values[name])
        return values

    return convert_all


def _encoder(fields: Iterable[Field]) -> Convert:
    public, core, encode, _ = zip(*fields, strict=True)
    return _converter(core, public, encode)


def _decoder(fields: Iterable[Field]) -> Convert:
    public, core, _, decode = zip(*fields, strict=True)
    return _converter(public, core, decode)


encode_fields: Final = _encoder(FIELDS)
"""Returns the fields of a task as the arguments of `TaskView`."""
_encode_summary: Final = _encoder(field for field in FIELDS if field.public not in LARGE)
_decode_all: Final = _decoder(FIELDS)


def encode_task(task: Task) -> TaskView:
    """Return a task as JSON shows it."""
    return TaskView(**encode_fields(task))


def decode_task(view: TaskView) -> Task:
    """Return the task that JSON shows."""
    values = _decode_all(view)
    if values["result"] == b"null" and view.status is not State.COMPLETED:
        values["result"] = None  # null is a result only of a completed task
    return Task(**values)


def encode_summary(task: Task) -> TaskSummary:
    """Return a task without its large fields, and without the traceback of its error."""
    values = _encode_summary(task)
    if values["error"] is not None:
        values["error"] = msgspec.structs.replace(values["error"], traceback=None)
    return TaskSummary(**values)
