"""Stored rows become structs."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.core.lanes import Lane
from fairlane.core.model import (
    Attempt,
    Progress,
    Spec,
    Task,
    TaskError,
    Worker,
    WorkerStatus,
    moment,
    moment_or_none,
)
from fairlane.core.priority import MICROSECONDS, Aging
from fairlane.core.states import State

Row = tuple[Any, ...]

_error = msgspec.json.Decoder(TaskError)


def error_of(stored: bytes | None) -> TaskError | None:
    """A stored error."""
    return None if stored is None else _error.decode(stored)


def attempt_of(row: Row) -> Attempt:
    """A run out of the attempts table."""
    _, number, worker_id, started_at, ended_at, outcome, error = row
    return Attempt(
        number,
        worker_id,
        moment_or_none(started_at),
        moment(ended_at),
        outcome,
        error_of(error),
    )


def task_of(row: Row, lane: Lane, attempts: list[Attempt], aging: Aging, now: int) -> Task:
    """A task out of its row, with what is known of its runs."""
    (
        task_id,
        _,
        level,
        state_code,
        ready_at,
        due_at,
        created_at,
        run_at,
        expires_at,
        attempt,
        retry_count,
        max_retries,
        returns,
        timeout,
        updated_at,
        version,
        payload,
        stored_spec,
        idempotency_key,
        worker_id,
        claimed_at,
        started_at,
        completed_at,
        error,
        result,
        progress,
    ) = row
    state = State.of(state_code)
    spec = Spec.decode(stored_spec)
    if state is State.COMPLETED:
        # The run that completed is told by the task's own row.
        run = Attempt(
            attempt, worker_id, moment_or_none(started_at), moment(completed_at), "completed"
        )
        attempts = [*attempts, run]
    return Task(
        task_id=task_id,
        type=lane.type,
        queue=lane.queue,
        priority=level,
        effective_priority=(
            aging.effective(level, now - ready_at) if state is State.QUEUED else level
        ),
        status=state,
        payload=payload,
        attempt=attempt,
        retry_count=retry_count,
        max_retries=max_retries,
        timeout_seconds=timeout,
        returns=returns,
        required_capabilities=lane.capabilities,
        created_at=moment(created_at),
        run_at=moment(run_at),
        ready_at=moment(ready_at),
        claimed_at=moment_or_none(claimed_at),
        started_at=moment_or_none(started_at),
        completed_at=moment_or_none(completed_at),
        updated_at=moment(updated_at),
        next_retry_at=moment_or_none(due_at) if state is State.RETRYING else None,
        expires_at=moment_or_none(expires_at),
        assigned_worker_id=worker_id,
        version=version,
        result=result,
        error=error_of(error),
        attempts=tuple(attempts),
        progress=progress_of(progress),
        tags=spec.tags,
        idempotency_key=idempotency_key,
        trace_id=spec.trace_id or task_id.replace("-", ""),
        traceparent=spec.traceparent,
        retry=spec.retry,
        workflow_id=spec.workflow_id,
        schedule_id=spec.schedule_id,
    )


def stored_progress(percent: float | None, message: str | None, now: int) -> bytes:
    """Progress as it is stored."""
    return msgspec.json.encode((percent, message, now))


def progress_of(stored: bytes | None) -> Progress | None:
    """What `stored_progress` was given."""
    if stored is None:
        return None
    percent, message, at = msgspec.json.decode(stored)
    return Progress(percent, message, moment(at))


def worker_of(row: Row, current_tasks: tuple[str, ...], now: int) -> Worker:
    """A worker out of its row."""
    (
        worker_id,
        status,
        capacity,
        load,
        capabilities,
        queues,
        types,
        host,
        version,
        health,
        lease,
        registered_at,
        seen_at,
    ) = row
    return Worker(
        worker_id=worker_id,
        status=WorkerStatus(status),
        capacity=capacity,
        load=load,
        current_tasks=current_tasks,
        capabilities=names_of(capabilities) or frozenset(),
        queues=names_of(queues),
        types=names_of(types),
        host=host,
        version=version,
        health=None if health is None else msgspec.json.decode(health),
        lease=lease / MICROSECONDS,
        registered_at=moment(registered_at),
        last_heartbeat=moment(seen_at),
        lost=status != WorkerStatus.DEAD and seen_at + lease <= now,
    )


def stored_names(names: frozenset[str] | None) -> str | None:
    """A set of names as it is stored; None means all."""
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


def names_of(stored: str | None) -> frozenset[str] | None:
    """What `stored_names` was given."""
    return None if stored is None else frozenset(msgspec.json.decode(stored))
