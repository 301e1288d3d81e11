"""Tasks and workers as engines store them, and how users see them.

An engine fills in a record from its rows: times in microseconds, JSON as bytes. What follows from
these values for the reader is said here once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from fairlane.core.inputs import named_inputs
from fairlane.core.lanes import Lane
from fairlane.core.leases import health_of
from fairlane.core.model import (
    PLAIN,
    Attempt,
    Cause,
    Claimed,
    Overdue,
    Progress,
    Spec,
    Task,
    TaskError,
    Worker,
    WorkerStatus,
    moment,
    moment_or_none,
)
from fairlane.core.ownership import shown_key
from fairlane.core.priority import MICROSECONDS, Aging
from fairlane.core.states import State
from fairlane.core.trail import trail_of

_error = msgspec.json.Decoder(TaskError)


class TaskRecord(msgspec.Struct, frozen=True):
    """A task as it is stored. `state` is a code; `due_at` is set while it waits for its time."""

    task_id: str
    level: int
    state: int
    ready_at: int
    due_at: int | None
    created_at: int
    run_at: int
    expires_at: int | None
    attempt: int
    retry_count: int
    max_retries: int
    returns: int
    timeout: float | None
    updated_at: int
    version: int
    payload: bytes
    spec: bytes | None
    idempotency_key: str | None
    worker_id: str | None
    claimed_at: int | None
    started_at: int | None
    completed_at: int | None
    error: bytes | None
    result: bytes | None
    trail: bytes | None

    def task(
        self,
        lane: Lane,
        attempts: Sequence[Attempt],
        progress: Progress | None,
        aging: Aging,
        now: int,
    ) -> Task:
        """Return the task as a user sees it at `now`. `attempts` are the runs that did not
        complete."""
        state = State.of(self.state)
        spec = Spec.decode(self.spec)
        runs = [*attempts]
        if state is State.COMPLETED and self.completed_at is not None:
            # The task itself has the run that completed.
            started, ended = moment_or_none(self.started_at), moment(self.completed_at)
            runs.append(Attempt(self.attempt, self.worker_id, started, ended, "completed"))
        return Task(
            task_id=self.task_id,
            type=lane.type,
            queue=lane.queue,
            level=self.level,
            effective_level=(
                aging.effective(self.level, now - self.ready_at)
                if state is State.QUEUED
                else self.level
            ),
            state=state,
            payload=self.payload,
            attempt=self.attempt,
            retry_count=self.retry_count,
            max_retries=self.max_retries,
            timeout=self.timeout,
            returns=self.returns,
            capabilities=lane.capabilities,
            created_at=moment(self.created_at),
            run_at=moment(self.run_at),
            ready_at=moment(self.ready_at),
            claimed_at=moment_or_none(self.claimed_at),
            started_at=moment_or_none(self.started_at),
            completed_at=moment_or_none(self.completed_at),
            updated_at=moment(self.updated_at),
            next_retry_at=moment_or_none(self.due_at) if state is State.RETRYING else None,
            expires_at=moment_or_none(self.expires_at),
            worker_id=self.worker_id,
            version=self.version,
            result=self.result,
            error=error_of(self.error),
            attempts=tuple(runs),
            progress=progress,
            tags=spec.tags,
            idempotency_key=shown_key(self.idempotency_key),
            trace_id=spec.trace_id or self.task_id.replace("-", ""),
            traceparent=spec.traceparent,
            retry=spec.retry,
            workflow_id=spec.workflow_id,
            schedule_id=spec.schedule_id,
            scheduled_for=moment_or_none(spec.tick),
            owner=spec.owner,
            depends_on=spec.depends_on,
            tolerant=spec.tolerant,
            inputs=named_inputs(spec.inputs, spec.depends_on) if spec.inputs else {},
            membership=spec.membership,
            trail=trail_of(self.trail),
        )


def head_of(task: Task) -> Task:
    """Return a task without what can be large: see `heads` in `store`."""
    kept = tuple(run for run in task.attempts if run.outcome == "completed")
    return msgspec.structs.replace(task, payload=b"", result=None, attempts=kept)


COUNTED = -1
"""Stored as the load of a worker that has not reported any: what it holds is counted."""


class WorkerRecord(msgspec.Struct, frozen=True):
    """A worker as it is stored: names as JSON arrays (None: all), durations in microseconds."""

    worker_id: str
    status: str
    capacity: int
    load: int
    capabilities: str
    queues: str | None
    types: str | None
    host: str
    version: str
    health: str | None
    lease: int
    start_within: int | None
    registered_at: int
    seen_at: int

    def worker(self, current_tasks: Sequence[str], now: int) -> Worker:
        """Return the worker as a user sees it at `now`."""
        status = WorkerStatus(self.status)
        return Worker(
            worker_id=self.worker_id,
            status=status,
            capacity=self.capacity,
            load=len(current_tasks) if self.load == COUNTED else self.load,
            current_tasks=tuple(current_tasks),
            capabilities=names_of(self.capabilities) or frozenset(),
            queues=names_of(self.queues),
            types=names_of(self.types),
            host=self.host,
            version=self.version,
            health=health_of(self.health),
            lease=self.lease / MICROSECONDS,
            start_within=None if self.start_within is None else self.start_within / MICROSECONDS,
            registered_at=moment(self.registered_at),
            last_heartbeat=moment(self.seen_at),
            lost=status is not WorkerStatus.DEAD and self.seen_at + self.lease <= now,
        )


def attempt_of(
    number: int,
    worker_id: str | None,
    started_at: int | None,
    ended_at: int,
    outcome: str,
    error: bytes | None,
) -> Attempt:
    """Return a stored run as a user sees it."""
    started, ended = moment_or_none(started_at), moment(ended_at)
    return Attempt(number, worker_id, started, ended, outcome, error_of(error))


def stored_seconds(seconds: float | None) -> int | None:
    """Return a duration as engines store it."""
    return None if seconds is None else int(seconds * MICROSECONDS)


def stored_error(error: TaskError | None) -> bytes | None:
    """Return an error as engines store it."""
    return None if error is None else msgspec.json.encode(error)


def error_of(stored: bytes | None) -> TaskError | None:
    """Return a stored error, if there is one."""
    return _error.decode(stored) if stored else None


def stored_names(names: frozenset[str] | None) -> str | None:
    """Return a set of names as engines store it; None means all."""
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


@lru_cache(maxsize=256)
def names_of(stored: str | None) -> frozenset[str] | None:
    """Return what `stored_names` was given. Cached, because workers are many, most of them alike,
    and each may have 32 KiB of names."""
    return None if stored is None else frozenset(msgspec.json.decode(stored))


def claimed_of(row: Sequence[Any], lane_of: Callable[[int], Lane], worker_id: str) -> Claimed:
    """Return a claimed row as a worker gets it: id, attempt, lane, level, payload, retry_count,
    max_retries, returns, timeout, created_at, ready_at, spec."""
    (id, attempt, lane_id, level, payload, retries, most, returns, timeout, made, ready, spec) = row
    lane = lane_of(lane_id)
    return Claimed(
        id,
        attempt,
        worker_id,
        lane.type,
        lane.queue,
        level,
        payload,
        retries,
        most,
        returns,
        timeout,
        made,
        ready,
        PLAIN if spec is None else Spec.decode(spec),
    )


def overdue_of(row: Sequence[Any]) -> Overdue:
    """Return an overdue row as the maintenance gets it: fence, type, cause, whether it
    began, retry_count, max_retries, returns, timeout, spec."""
    task_id, attempt, worker_id, type, cause, started, retries, most, returns, timeout, spec = row
    return Overdue(
        task_id=str(task_id),
        attempt=attempt,
        worker_id=worker_id,
        type=type,
        cause=Cause(cause),
        started=bool(started),
        retry_count=retries,
        max_retries=most,
        returns=returns,
        timeout=timeout,
        retry=Spec.decode(spec).retry,
    )
