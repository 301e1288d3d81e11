"""submit: storing tasks, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.errors import BatchTooLarge
from fairlane.core.flow import Flow, writes
from fairlane.core.model import Accepted, NewTask, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.uniqueness import Hold, unmask
from fairlane.engines.http.calls import post
from fairlane.wire.policies import RetryView
from fairlane.wire.submission import BatchAccepted
from fairlane.wire.times import iso_of


@writes
def submit(_: object, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    if not tasks:
        return []
    if len(tasks) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are submitted at once, not {len(tasks):,}."
        )
    body = {"tasks": [_request(task) for task in tasks]}
    answer = yield from post("/api/v1/tasks/batch", body, BatchAccepted)
    return [
        Accepted(
            each.task_id,
            each.status,
            microseconds_of(datetime.fromisoformat(each.created_at)),
            each.known,
        )
        for each in answer.tasks
    ]


def _request(task: NewTask) -> dict[str, Any]:
    """Return a task as the API takes it. Everything is resolved, except times relative to now."""
    spec = task.spec
    request: dict[str, Any] = {
        "task_id": task.task_id,
        "task_type": task.type,
        "parameters": msgspec.Raw(task.payload),
        "queue": task.queue,
        "priority": task.level,
        "max_retries": task.max_retries,
        "timeout_seconds": task.timeout,
        "retry_policy": RetryView.of(spec.retry),
    }
    optional = {
        "required_capabilities": task.capabilities,
        "delay_seconds": task.delay,
        "run_at": None if task.run_at is None else iso_of(task.run_at),
        "expires_at": None if task.expires_at is None else iso_of(task.expires_at),
        "idempotency_key": task.idempotency_key,
        "unique": None if task.unique is None else _unique(task.unique),
        "tags": spec.tags,
        "depends_on": spec.depends_on,
        "on_parent_failure": OnParentFailure.CONTINUE if spec.tolerant else None,
        "trace_id": spec.trace_id,
        "traceparent": spec.traceparent,
    }
    return request | {name: value for name, value in optional.items() if value}


def _unique(hold: Hold) -> dict[str, Any]:
    return {
        "arguments": hold.arguments,
        "states": sorted(unmask(hold.states)),
        "period_seconds": None if hold.period is None else hold.period / MICROSECONDS,
        "mode": hold.mode,
    }
