"""Stored bytes become structs."""

from __future__ import annotations

import struct

import msgspec

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
from fairlane.core.states import TERMINAL, State
from fairlane.engines.redis.record import Record, fixed, text_id

_error = msgspec.json.Decoder(TaskError)

# attempt, started_at, ended_at, then the lengths of worker, outcome and error, which follow
_RUN = struct.Struct(">IQQBBI")
# id, attempt, microseconds (-1: untimed)
_LINE = struct.Struct(">16sIq")

WORKER_FIELDS = (
    "status",
    "capacity",
    "load",
    "capabilities",
    "queues",
    "types",
    "host",
    "version",
    "health",
    "lease",
    "registered_at",
    "seen_at",
)


def error_of(stored: bytes | None) -> TaskError | None:
    """A stored error."""
    return _error.decode(stored) if stored else None


def runs_of(stored: bytes | None) -> list[Attempt]:
    """A task's runs that did not complete, in the order they ended."""
    found: list[Attempt] = []
    at = 0
    while stored and at < len(stored):
        number, started_at, ended_at, *lengths = _RUN.unpack_from(stored, at)
        at += _RUN.size
        parts = []
        for length in lengths:
            parts.append(stored[at : at + length])
            at += length
        worker, outcome, error = parts
        found.append(
            Attempt(
                number,
                worker.decode() or None,
                moment_or_none(started_at or None),
                moment(ended_at),
                outcome.decode(),
                error_of(error),
            )
        )
    return found


def run_of(stored: bytes) -> tuple[str, int]:
    """A task's id and attempt."""
    return text_id(stored[:16]), int.from_bytes(stored[16:20])


def task_of(
    task_id: str,
    record: Record,
    stored_task: bytes,
    attempts: list[Attempt],
    error: bytes | None,
    progress: bytes | None,
    lane: Lane,
    aging: Aging,
    now: int,
) -> Task:
    """A task out of its record, with what is known of its runs."""
    state = State.of(record.state)
    max_retries, idempotency_key, stored_spec, payload = fixed(stored_task)
    spec = Spec.decode(stored_spec or None)
    worker_id = record.worker_id or None
    started_at = moment_or_none(record.started_at or None)
    # Nothing touches a task after its end.
    completed_at = moment(record.updated_at) if state in TERMINAL else None
    if state is State.COMPLETED:
        # The run that completed is told by the task's own record.
        assert completed_at is not None
        run = Attempt(record.attempt, worker_id, started_at, completed_at, "completed")
        attempts = [*attempts, run]
    return Task(
        task_id=task_id,
        type=lane.type,
        queue=lane.queue,
        priority=record.level,
        effective_priority=(
            aging.effective(record.level, now - record.ready_at)
            if state is State.QUEUED
            else record.level
        ),
        status=state,
        payload=payload,
        attempt=record.attempt,
        retry_count=record.retry_count,
        max_retries=max_retries,
        timeout_seconds=record.timeout or None,
        returns=record.returns,
        required_capabilities=lane.capabilities,
        created_at=moment(record.created_at),
        run_at=moment(record.run_at),
        ready_at=moment(record.ready_at),
        claimed_at=moment_or_none(record.claimed_at or None),
        started_at=started_at,
        completed_at=completed_at,
        updated_at=moment(record.updated_at),
        next_retry_at=moment(record.due_at) if state is State.RETRYING else None,
        expires_at=moment_or_none(record.expires_at or None),
        assigned_worker_id=worker_id,
        version=record.version,
        result=record.rest if state is State.COMPLETED else None,
        error=error_of(error),
        attempts=tuple(attempts),
        progress=progress_of(progress),
        tags=spec.tags,
        idempotency_key=idempotency_key.decode() or None,
        trace_id=spec.trace_id or task_id.replace("-", ""),
        traceparent=spec.traceparent,
        retry=spec.retry,
        workflow_id=spec.workflow_id,
        schedule_id=spec.schedule_id,
    )


def stored_progress(percent: float | None, message: str | None) -> bytes:
    """Progress as it is stored; the script puts its time in front."""
    return msgspec.json.encode((percent, message))


def progress_of(stored: bytes | None) -> Progress | None:
    """What `stored_progress` was given."""
    if not stored:
        return None
    percent, message = msgspec.json.decode(stored[8:])
    return Progress(percent, message, moment(int.from_bytes(stored[:8])))


def worker_of(worker_id: bytes, row: list[bytes | None], runs: list[bytes], now: int) -> Worker:
    """A worker out of its fields, in the order of WORKER_FIELDS."""
    texts = {
        field: (value or b"").decode() for field, value in zip(WORKER_FIELDS, row, strict=True)
    }
    status = WorkerStatus(texts["status"])
    lease, seen_at = int(texts["lease"]), int(texts["seen_at"])
    return Worker(
        worker_id=worker_id.decode(),
        status=status,
        capacity=int(texts["capacity"]),
        load=int(texts["load"]),
        current_tasks=tuple(sorted(text_id(run[:16]) for run in runs)),
        capabilities=names_of(texts["capabilities"]) or frozenset(),
        queues=names_of(texts["queues"]),
        types=names_of(texts["types"]),
        host=texts["host"],
        version=texts["version"],
        health=msgspec.json.decode(texts["health"]) if texts["health"] else None,
        lease=lease / MICROSECONDS,
        registered_at=moment(int(texts["registered_at"])),
        last_heartbeat=moment(seen_at),
        lost=status is not WorkerStatus.DEAD and seen_at + lease <= now,
    )


def stored_names(names: frozenset[str] | None) -> bytes:
    """A set of names as it is stored; None means all."""
    return b"" if names is None else msgspec.json.encode(sorted(names))


def names_of(stored: str) -> frozenset[str] | None:
    """What `stored_names` was given."""
    return frozenset(msgspec.json.decode(stored)) if stored else None


def passage_of(field: tuple[bytes, bytes]) -> Passage:
    """A passage of the journal; books.lua says how it is written."""
    name, value = field
    verb, *rest = name.decode().split(" ")
    if not value:
        return Passage(verb, rest[0])
    stream, worker_id = rest
    lane, level = map(int, stream.split(":"))
    lines = list(_LINE.iter_unpack(value))
    return Passage(
        verb,
        worker_id or None,
        lane,
        level,
        [text_id(raw) for raw, _, _ in lines],
        [attempt for _, attempt, _ in lines],
        [None if ran < 0 else ran / MICROSECONDS for _, _, ran in lines],
    )
