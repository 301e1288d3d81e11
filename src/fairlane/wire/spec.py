"""Tasks in the shapes of specification 001.

001 is the specification of a simple task queue that Fairlane implements to the letter, beside its
own API: it prints the routes under `/api/tasks`, their JSON in camelCase, five statuses (pending,
processing, completed, failed, cancelled), and counts attempts instead of retries.

Attributes have Python names; they become camelCase in JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidRetries
from fairlane.core.model import NewTask, Task
from fairlane.core.priority import DEFAULT as DEFAULT_LEVEL
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.stats import Stats
from fairlane.core.submission import UNSET, Unset, new_task
from fairlane.core.text import shown

RETRY: Final = RetryPolicy(base=10.0, factor=2.0, cap=6 * 3600.0, jitter=0.2)
MAX_ATTEMPTS: Final = 3
TASK_TIMEOUT: Final = 300.0

STATUS: Final = {
    State.SCHEDULED: "pending",
    State.QUEUED: "pending",
    State.EXECUTING: "processing",
    State.RETRYING: "failed",
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.DEAD_LETTER: "failed",
    State.CANCELLED: "cancelled",
}

StatusName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted(set(STATUS.values()))})]

_WRAPPER: Final = "$value"


def wrapped(payload: Any) -> Mapping[str, Any]:
    """Return any JSON value as the object that the core needs.

    Objects stay as they are, so that others can read them, except one that looks like a wrapper.
    """
    if isinstance(payload, Mapping) and payload.keys() != {_WRAPPER}:
        return payload
    return {_WRAPPER: payload}


def wrapped_json(payload: bytes) -> bytes:
    """`wrapped` for JSON that is stored as it was sent."""
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return payload  # the check of the payload says what is wrong
    if isinstance(value, dict) and value.keys() != {_WRAPPER}:
        return payload
    return b'{"%s":%s}' % (_WRAPPER.encode(), payload)


def unwrapped_json(payload: bytes) -> msgspec.Raw:
    """Return the argument of `wrapped_json`, byte for byte."""
    value = msgspec.json.decode(payload)
    if value.keys() != {_WRAPPER}:
        return msgspec.Raw(payload)
    return msgspec.json.decode(payload, type=_Wrapped).value


class _Wrapped(msgspec.Struct):
    value: msgspec.Raw = msgspec.field(name=_WRAPPER)


def unwrapped(payload: Mapping[str, Any]) -> Any:
    """Return the argument of `wrapped`."""
    return payload[_WRAPPER] if payload.keys() == {_WRAPPER} else payload


def new_spec_task(
    type: str,
    payload: Any,
    *,
    max_attempts: int = MAX_ATTEMPTS,
    run_after: datetime | None = None,
    timeout: float | Unset | None = UNSET,
    priority: str | int | None = None,
) -> NewTask:
    """Return a new task with the defaults of 001. A payload of bytes is JSON, stored as it is.

    A task that names no timeout has 001's, unless its type has one.
    """
    task = new_task(
        type,
        wrapped_json(payload) if isinstance(payload, bytes) else wrapped(payload),
        priority=DEFAULT_LEVEL if priority is None else priority,
        max_retries=_retries(max_attempts),
        timeout_seconds=timeout,
        run_at=run_after,
        retry_policy=RETRY,
    )
    return task if task.spec.timed else msgspec.structs.replace(task, timeout=TASK_TIMEOUT)


def _retries(max_attempts: object) -> int:
    if isinstance(max_attempts, int) and 1 <= max_attempts <= limits.RETRIES + 1:
        return max_attempts - 1
    raise InvalidRetries(
        f"max_attempts is a whole number from 1 to {limits.RETRIES + 1:,}. "
        f"Got {shown(max_attempts)}."
    )


class SpecTask(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task. `failed` with a `completed_at` has failed for good, without one it is retried."""

    id: str
    type: str
    payload: Any
    status: str
    attempts: int
    max_attempts: int
    last_attempt_at: datetime | None
    next_retry_at: datetime | None
    result: Any
    error: str | None
    run_after: datetime | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class QueueStats(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many tasks there are in each status, in total and by type; `processing_rate` is how many
    completed within the last hour."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    by_type: Mapping[str, Mapping[str, int]] = {}
    processing_rate: int = 0


def task_of(task: Task) -> SpecTask:
    """Return a task in this shape."""
    status = STATUS[task.state]
    return SpecTask(
        id=task.task_id,
        type=task.type,
        payload=unwrapped(msgspec.json.decode(task.payload)),
        status=status,
        attempts=task.retry_count + (task.state in (State.EXECUTING, State.COMPLETED)),
        max_attempts=task.max_retries + 1,
        last_attempt_at=_last_attempt(task),
        next_retry_at=task.next_retry_at,
        result=None if task.result is None else msgspec.json.decode(task.result),
        error=task.error.message if task.error is not None and status == "failed" else None,
        run_after=None if task.run_at == task.created_at else task.run_at,
        created_at=task.created_at,
        updated_at=task.updated_at,
        completed_at=task.completed_at,
    )


def stats_of(stats: Stats) -> QueueStats:
    """Return statistics in this shape."""
    by_type = {type: dict(_counted(states)) for type, states in stats.by_type.items()}
    return QueueStats(
        **_counted(stats.by_status),
        by_type=by_type,
        processing_rate=stats.throughput.completed_last_hour,
    )


def _counted(states: Mapping[State, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for state, count in states.items():
        counts[STATUS[state]] += count
    return counts


def _last_attempt(task: Task) -> datetime | None:
    if task.claimed_at is not None:
        return task.claimed_at
    return next((run.started_at for run in reversed(task.attempts) if run.started_at), None)
