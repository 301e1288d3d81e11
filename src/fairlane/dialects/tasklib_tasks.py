"""Document 004's configuration and tasks, as the view `tasks` on PostgreSQL also shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from fairlane.core import limits, retry
from fairlane.core.errors import InvalidFilter
from fairlane.core.model import Task as CoreTask
from fairlane.core.model import TaskError, Worker
from fairlane.core.states import State
from fairlane.core.text import shown
from fairlane.dialects.errors import TaskTimeoutError
from fairlane.worker.config import Config as WorkerConfig

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


class Config(msgspec.Struct, frozen=True):
    """The store, and the defaults for tasks that set nothing else."""

    database_url: str
    """The URL of any store: postgresql://…, sqlite:///tasks.db, redis://…."""
    max_retries: int = 3
    base_retry_delay_seconds: float = 5.0
    retry_backoff_multiplier: float = 2.0
    lock_timeout_seconds: float = 600
    """How long a worker may be silent before others take over its tasks."""
    default_task_timeout_seconds: float | None = None
    worker_id: str | None = None
    """What the ids of this process's workers begin with. The default is a generated name."""

    def __post_init__(self) -> None:
        retry.checked(self.retry)

    @property
    def retry(self) -> retry.RetryPolicy:
        """The retry policy: delays have neither a cap nor jitter."""
        return retry.RetryPolicy(
            base=self.base_retry_delay_seconds,
            factor=self.retry_backoff_multiplier,
            cap=limits.DELAY_SECONDS,
            jitter=0.0,
        )

    def worker(self, concurrency: int, poll_interval: float) -> WorkerConfig:
        """Return the configuration of a worker."""
        return WorkerConfig(
            concurrency=concurrency,
            poll_interval=poll_interval,
            lease=self.lock_timeout_seconds,
            name=self.worker_id,
        )


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task. If it is `failed` and has a `next_retry_at`, it will be retried then; without one it
    has failed for good."""

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
    """Return a task as document 004 describes it. `workers` are those that may run it."""
    running = task.state is State.EXECUTING
    holder = workers.get(task.worker_id or "") if running else None
    return Task(
        id=UUID(task.task_id),
        name=task.type,
        args={},
        kwargs=msgspec.json.decode(task.payload),
        state=STATES[task.state],
        result=None if task.result is None else {"value": msgspec.json.decode(task.result)},
        error=None if task.error is None else _text(task.error),
        retry_count=task.retry_count,
        max_retries=task.max_retries,
        next_retry_at=task.next_retry_at,
        scheduled_at=task.run_at,
        started_at=task.started_at,
        completed_at=task.completed_at,
        created_at=task.created_at,
        worker_id=task.worker_id if running else None,
        locked_until=(
            None if holder is None else holder.last_heartbeat + timedelta(seconds=holder.lease)
        ),
        timeout_seconds=task.timeout,
        priority=task.level,
        tags=dict(task.tags),
    )


def states_of(name: str) -> frozenset[State]:
    """Return the states that document 004 calls by this name."""
    found = frozenset(state for state, known in STATES.items() if known == name)
    if not found:
        known = ", ".join(dict.fromkeys(STATES.values()))
        raise InvalidFilter(f"A state is one of {known}. Got {shown(name)}.")
    return found


def _text(error: TaskError) -> str:
    if error.code == "TIMEOUT":
        return f"{TaskTimeoutError.__name__}: {error.message}"
    return error.traceback or error.message
