"""Stored rows become structs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from fairlane.core.errors import InvalidTaskId
from fairlane.core.journal import Passage
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


def array(values: Iterable[object]) -> str:
    """Numbers as the literal of an array: drivers take many times longer to send a list."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_ids(task_ids: Sequence[str]) -> str:
    """Ids as the literal of an array."""
    literal = "{" + ",".join(task_ids) + "}"
    if task_ids and literal.count(",") != len(task_ids) - 1:
        raise InvalidTaskId  # or everything behind it would be taken for something else
    return literal


_error = msgspec.json.Decoder(TaskError)


class Header(NamedTuple):
    """How a claim found the worker and the store."""

    status: str | None
    request_id: str | None
    claimed_at: int | None
    version: int
    now: int
    due_at: int | None
    expires_at: int | None

    @classmethod
    def of(cls, reply: Sequence[Row]) -> Self:
        """Out of a claim's reply: the row that has no place among the tasks."""
        status, request_id, numbers = next(tuple(row)[13:] for row in reply if row[0] == 0)
        return cls(status, request_id, *numbers)

    @property
    def untidy(self) -> bool:
        """Whether tasks have come due or expired that nobody has seen to."""
        times = (self.due_at, self.expires_at)
        return any(time is not None and time <= self.now for time in times)


def error_of(stored: bytes | None) -> TaskError | None:
    """A stored error."""
    return None if stored is None else _error.decode(stored)


def task_of(row: Row, lane: Lane, aging: Aging) -> Task:
    """A task out of its row, with its runs."""
    (
        now,
        task_id,
        _,
        level,
        state_code,
        ready_at,
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
        error,
        progress,
        progress_at,
        completed_at,
        result,
        due_at,
        *runs,
    ) = row
    state = State.of(state_code)
    spec = Spec.decode(stored_spec)
    attempts = _attempts_of(runs)
    if state is State.COMPLETED:
        # The run that completed is told by the task's own row.
        start, end = moment_or_none(started_at), moment(completed_at)
        attempts.append(Attempt(attempt, worker_id, start, end, "completed"))
    task_id = str(task_id)
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
        progress=progress_of(progress, progress_at),
        tags=spec.tags,
        idempotency_key=idempotency_key,
        trace_id=spec.trace_id or task_id.replace("-", ""),
        traceparent=spec.traceparent,
        retry=spec.retry,
        workflow_id=spec.workflow_id,
        schedule_id=spec.schedule_id,
    )


def _attempts_of(columns: list[list[Any] | None]) -> list[Attempt]:
    """Runs out of the arrays of a task's row; they are null when there are none."""
    if columns[0] is None:
        return []
    return [
        Attempt(number, worker, moment_or_none(start), moment(end), outcome, error_of(error))
        for number, worker, start, end, outcome, error in zip(*columns, strict=True)
    ]


def stored_progress(percent: float | None, message: str | None) -> bytes:
    """Progress as it is stored."""
    return msgspec.json.encode((percent, message))


def progress_of(stored: bytes | None, at: int) -> Progress | None:
    """What `stored_progress` was given."""
    if stored is None:
        return None
    percent, message = msgspec.json.decode(stored)
    return Progress(percent, message, moment(at))


def worker_of(row: Row) -> Worker:
    """A worker out of its row."""
    (
        now,
        current_tasks,
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
        current_tasks=tuple(sorted(str(task_id) for task_id in current_tasks or ())),
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


def passage_of(row: Row) -> tuple[str, int, Passage]:
    """A row of the journal: its cursor, its time and what it tells."""
    xid, n, at, verb, worker_id, lane, level, task_ids, attempts, seconds = row
    return (
        f"{xid}-{n}",
        at,
        Passage(
            verb,
            worker_id,
            lane or 0,
            level or 0,
            [str(task_id) for task_id in task_ids or ()],
            attempts or (),
            seconds or (),
        ),
    )
