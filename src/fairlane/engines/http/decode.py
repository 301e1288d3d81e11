"""Tasks, workers and the rest as the API shows them, and what they are to the core."""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairlane.core.analysis import Analysis, Group
from fairlane.core.audit import Audit
from fairlane.core.breaker import Breaker
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.facts import Sample
from fairlane.core.lanes import Controls, Rules
from fairlane.core.model import Attempt, Progress, Task, TaskError, Worker, microseconds_of
from fairlane.core.priority import Band, level_of
from fairlane.core.states import State
from fairlane.wire.audit import AuditEntry
from fairlane.wire.figures import AnalysisView, SampleView
from fairlane.wire.limits import ControlsView, RulesView
from fairlane.wire.tasks import AttemptView, ErrorView, ProgressView, TaskView
from fairlane.wire.workers import WorkerView


def task_of(view: TaskView) -> Task:
    """A task."""
    return Task(
        task_id=view.task_id,
        type=view.task_type,
        queue=view.queue,
        priority=level_of(view.priority),
        effective_priority=level_of(view.effective_priority),
        status=view.status,
        payload=bytes(view.parameters),
        attempt=view.attempt,
        retry_count=view.retry_count,
        max_retries=view.max_retries,
        timeout_seconds=view.timeout_seconds,
        returns=view.returns,
        required_capabilities=view.required_capabilities,
        created_at=datetime.fromisoformat(view.created_at),
        run_at=datetime.fromisoformat(view.run_at),
        ready_at=datetime.fromisoformat(view.ready_at),
        claimed_at=_time(view.claimed_at),
        started_at=_time(view.started_at),
        completed_at=_time(view.completed_at),
        updated_at=datetime.fromisoformat(view.updated_at),
        next_retry_at=_time(view.next_retry_at),
        expires_at=_time(view.expires_at),
        assigned_worker_id=view.assigned_worker_id,
        version=view.version,
        result=_result(view),
        error=_error(view.error),
        attempts=tuple(map(_attempt, view.attempts)),
        progress=_progress(view.progress),
        tags=view.tags,
        idempotency_key=view.idempotency_key,
        trace_id=view.trace_id,
        traceparent=view.traceparent,
        retry=view.retry_policy.policy(),
        workflow_id=view.workflow_id,
        schedule_id=view.schedule_id,
        depends_on=view.depends_on or (),
        tolerant=view.on_parent_failure is OnParentFailure.CONTINUE,
    )


def worker_of(view: WorkerView) -> Worker:
    """A worker. One whose lease has run out is told of as dead."""
    return Worker(
        worker_id=view.worker_id,
        status=view.status,
        capacity=view.capacity,
        load=view.current_load,
        current_tasks=view.current_tasks,
        capabilities=frozenset(view.capabilities),
        queues=None if view.queues is None else frozenset(view.queues),
        types=None if view.types is None else frozenset(view.types),
        host=view.host,
        version=view.version,
        health=view.health,
        lease=view.lease_seconds,
        registered_at=datetime.fromisoformat(view.registered_at),
        last_heartbeat=datetime.fromisoformat(view.last_heartbeat),
        lost=False,
    )


def controls_of(view: ControlsView) -> Controls:
    """What is paused and limited."""
    return Controls(
        everything=Rules(paused=view.paused, rate=view.rate_limit),
        paused_queues=frozenset(view.paused_queues),
        types={type: _rules(each) for type, each in view.types.items()},
    )


def sample_of(view: SampleView) -> Sample:
    """How the counters stood."""
    return Sample(
        at=microseconds_of(datetime.fromisoformat(view.timestamp)),
        submitted=view.submitted,
        started=view.started,
        completed=view.completed,
        failed=view.failed,
        timeouts=view.timeouts,
        lost_workers=view.lost_workers,
        stale_results=view.stale_results,
        seconds=view.execution_seconds,
        depths=tuple(view.depths[band] for band in Band),
    )


def analysis_of(view: AnalysisView) -> Analysis:
    """Dead letters in groups."""
    groups = [
        Group(
            type=each.type,
            code=each.code,
            shape=each.shape,
            count=each.count,
            first_seen=datetime.fromisoformat(each.first_seen),
            last_seen=datetime.fromisoformat(each.last_seen),
            retriable_share=each.retriable_share,
            example=each.example,
        )
        for each in view.groups
    ]
    return Analysis(groups, view.analysed, view.complete)


def audit_of(view: AuditEntry) -> Audit:
    """Something that was done."""
    return Audit(
        entry_id=view.entry_id,
        at=datetime.fromisoformat(view.timestamp),
        actor=view.actor,
        action=view.action,
        subject=view.subject,
        detail=msgspec.json.encode(view.detail).decode(),
        address=view.address,
    )


def _rules(view: RulesView) -> Rules:
    breaker, until = view.circuit_breaker, view.open_until
    return Rules(
        paused=view.paused,
        rate=view.rate_limit,
        concurrency=view.concurrency,
        breaker=None
        if breaker is None
        else Breaker(breaker.failures, breaker.within_seconds, breaker.cooldown_seconds),
        open_until=None if until is None else microseconds_of(datetime.fromisoformat(until)),
    )


def _result(view: TaskView) -> bytes | None:
    """Null is a result as well, of a task that completed."""
    result = bytes(view.result)
    return None if result == b"null" and view.status is not State.COMPLETED else result


def _error(view: ErrorView | None) -> TaskError | None:
    return None if view is None else TaskError(**msgspec.structs.asdict(view))


def _attempt(view: AttemptView) -> Attempt:
    return Attempt(
        view.number,
        view.worker_id,
        _time(view.started_at),
        datetime.fromisoformat(view.ended_at),
        view.outcome,
        _error(view.error),
    )


def _progress(view: ProgressView | None) -> Progress | None:
    if view is None:
        return None
    return Progress(view.percent, view.message, datetime.fromisoformat(view.updated_at))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
