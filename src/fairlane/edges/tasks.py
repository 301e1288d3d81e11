"""Tasks as 004 has them, the same as the view `tasks` on PostgreSQL tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.core.errors import InvalidFilter
from fairlane.core.model import Task as CoreTask
from fairlane.core.model import TaskError, Worker
from fairlane.core.states import State
from fairlane.core.text import shown
from fairlane.edges.errors import TaskTimeoutError

STATES: Final = {
    State.SCHEDULED: "pending",
    State.QUEUED: "pending",
    State.EXECUTING: "running",
    State.RETRYING: "failed",
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.DEAD_LETTER: "failed",
    State.CANCELLED: "cancelled",
}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task. `failed` with a `next_retry_at` will be tried again, without one it has failed for
    good."""

    id: UUID
    name: str
    args: dict[str, Any]
    kwargs: dict[str, Any]
    state: str
    result: dict[str, Any] | None
    """{"value": what the function returned}"""
    error: str | None
    """The traceback of the last failure."""
    retry_count: int
    max_retries: int
    next_retry_at: datetime | None
    scheduled_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    created_at: datetime
    worker_id: str | None
    locked_until: datetime | None
    timeout_seconds: float | None
    priority: int
    tags: dict[str, str]


def task_of(task: CoreTask, workers: Mapping[str, Worker]) -> Task:
    """A task in these words; `workers` are those that may hold it."""
    running = task.status is State.EXECUTING
    holder = workers.get(task.assigned_worker_id or "") if running else None
    return Task(
        id=UUID(task.task_id),
        name=task.type,
        args={},
        kwargs=msgspec.json.decode(task.payload),
        state=STATES[task.status],
        result=None if task.result is None else {"value": msgspec.json.decode(task.result)},
        error=None if task.error is None else _text(task.error),
        retry_count=task.retry_count,
        max_retries=task.max_retries,
        next_retry_at=task.next_retry_at,
        scheduled_at=task.run_at,
        started_at=task.started_at,
        completed_at=task.completed_at,
        created_at=task.created_at,
        worker_id=task.assigned_worker_id if running else None,
        locked_until=(
            None if holder is None else holder.last_heartbeat + timedelta(seconds=holder.lease)
        ),
        timeout_seconds=task.timeout_seconds,
        priority=task.priority,
        tags=dict(task.tags),
    )


def states_of(name: str) -> frozenset[State]:
    """The states that go by this name."""
    found = frozenset(state for state, known in STATES.items() if known == name)
    if not found:
        known = ", ".join(dict.fromkeys(STATES.values()))
        raise InvalidFilter(f"A state is one of {known}. Got {shown(name)}.")
    return found


def _text(error: TaskError) -> str:
    if error.code == "TIMEOUT":
        return f"{TaskTimeoutError.__name__}: {error.message}"
    return error.traceback or error.message
