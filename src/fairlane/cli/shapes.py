"""What `--json` prints: snake_case keys that stay as they are, times in ISO 8601 UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from fairlane.cli.escapes import harmless_json
from fairlane.core.lanes import Controls, Rules
from fairlane.core.model import Attempt, Event, Task, TaskError, Worker, moment_or_none
from fairlane.core.priority import shown_as


def emit(document: Any) -> None:
    """Print a document."""
    click.echo(_encoded(document, indent=2))


def emit_line(document: Any) -> None:
    """Print a document on a line of its own, at once: for streams of them."""
    click.echo(_encoded(document, indent=-1))


def _encoded(document: Any, indent: int) -> str:
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=indent)
    return harmless_json(encoded.decode("utf-8"))


def iso(time: datetime | None) -> str | None:
    """A time for programs."""
    if time is None:
        return None
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def task(found: Task) -> dict[str, Any]:
    """A task, with everything there is to know about it."""
    return {
        "task_id": found.task_id,
        "type": found.type,
        "queue": found.queue,
        "payload": msgspec.Raw(found.payload),
        "priority": shown_as(found.priority),
        "effective_priority": shown_as(found.effective_priority),
        "status": found.status,
        "attempt": found.attempt,
        "retry_count": found.retry_count,
        "max_retries": found.max_retries,
        "timeout_seconds": found.timeout_seconds,
        "required_capabilities": list(found.required_capabilities),
        "created_at": iso(found.created_at),
        "run_at": iso(found.run_at),
        "ready_at": iso(found.ready_at),
        "started_at": iso(found.started_at),
        "completed_at": iso(found.completed_at),
        "updated_at": iso(found.updated_at),
        "next_retry_at": iso(found.next_retry_at),
        "expires_at": iso(found.expires_at),
        "assigned_worker_id": found.assigned_worker_id,
        "version": found.version,
        "result": None if found.result is None else msgspec.Raw(found.result),
        "error": error(found.error),
        "attempts": [attempt(each) for each in found.attempts],
        "progress": None
        if found.progress is None
        else {
            "percent": found.progress.percent,
            "message": found.progress.message,
            "updated_at": iso(found.progress.updated_at),
        },
        "tags": found.tags,
        "idempotency_key": found.idempotency_key,
        "trace_id": found.trace_id,
        "traceparent": found.traceparent,
        "depends_on": list(found.depends_on) or None,
        "workflow_id": found.workflow_id,
        "schedule_id": found.schedule_id,
    }


def error(found: TaskError | None) -> dict[str, Any] | None:
    """Why a run failed."""
    if found is None:
        return None
    return {name: getattr(found, name) for name in found.__struct_fields__}


def attempt(found: Attempt) -> dict[str, Any]:
    """A run that is over."""
    return {
        "number": found.number,
        "worker_id": found.worker_id,
        "started_at": iso(found.started_at),
        "ended_at": iso(found.ended_at),
        "outcome": found.outcome,
        "error": error(found.error),
    }


def worker(found: Worker) -> dict[str, Any]:
    """A worker."""
    return {
        "worker_id": found.worker_id,
        "status": "dead" if found.lost else found.status,
        "current_tasks": list(found.current_tasks),
        "last_heartbeat": iso(found.last_heartbeat),
        "registered_at": iso(found.registered_at),
        "capacity": found.capacity,
        "current_load": found.load,
        "capabilities": sorted(found.capabilities),
        "queues": None if found.queues is None else sorted(found.queues),
        "types": None if found.types is None else sorted(found.types),
        "version": found.version,
        "host": found.host,
        "health": found.health,
    }


def event(found: Event) -> dict[str, Any]:
    """A transition."""
    return {
        "cursor": found.cursor,
        "event": found.verb,
        "timestamp": iso(found.at),
        "task_id": found.task_id,
        "type": found.type,
        "queue": found.queue,
        "priority": None if found.level is None else shown_as(found.level),
        "attempt": found.attempt,
        "worker_id": found.worker_id,
        "seconds": found.seconds,
    }


def controls(found: Controls) -> dict[str, Any]:
    """What is paused and limited."""
    return {
        "paused": found.everything.paused,
        "rate_limit": found.everything.rate,
        "paused_queues": sorted(found.paused_queues),
        "types": {type: rules(each) for type, each in sorted(found.types.items())},
    }


def rules(found: Rules) -> dict[str, Any]:
    """What is set for a type."""
    breaker = found.breaker
    return {
        "paused": found.paused,
        "rate_limit": found.rate,
        "concurrency": found.concurrency,
        "circuit_breaker": None
        if breaker is None
        else {
            "failures": breaker.failures,
            "within_seconds": breaker.within,
            "cooldown_seconds": breaker.cooldown,
        },
        "open_until": iso(moment_or_none(found.open_until)),
    }
