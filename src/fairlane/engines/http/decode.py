"""Decoding what the API shows: workers, limits, samples, dead letters, the audit log."""

from __future__ import annotations

import msgspec

from fairlane.core.analysis import Analysis, Group
from fairlane.core.audit import Audit
from fairlane.core.breaker import Breaker
from fairlane.core.facts import Sample
from fairlane.core.lanes import Controls, Rules
from fairlane.core.model import Worker, microseconds_of
from fairlane.core.priority import Band
from fairlane.wire.audit import AuditEntry
from fairlane.wire.figures import AnalysisView, SampleView
from fairlane.wire.limits import ControlsView, RulesView
from fairlane.wire.times import time_of
from fairlane.wire.workers import WorkerView


def worker_of(view: WorkerView) -> Worker:
    """Return a worker. The API shows one whose lease has expired as dead."""
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
        start_within=view.start_within_seconds,
        registered_at=time_of(view.registered_at),
        last_heartbeat=time_of(view.last_heartbeat),
        lost=False,
    )


def controls_of(view: ControlsView) -> Controls:
    """Return what is paused and limited."""
    return Controls(
        everything=Rules(paused=view.paused, rate=view.rate_limit),
        paused_queues=frozenset(view.paused_queues),
        types={type: _rules(each) for type, each in view.types.items()},
    )


def sample_of(view: SampleView) -> Sample:
    """Return a sample of the counters."""
    return Sample(
        at=microseconds_of(time_of(view.timestamp)),
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
    """Return the groups of dead letters."""
    groups = [
        Group(
            type=each.type,
            code=each.code,
            shape=each.shape,
            count=each.count,
            first_seen=time_of(each.first_seen),
            last_seen=time_of(each.last_seen),
            retriable_share=each.retriable_share,
            example=each.example,
        )
        for each in view.groups
    ]
    return Analysis(groups, view.analysed, view.complete)


def audit_of(view: AuditEntry) -> Audit:
    """Return an entry of the audit log."""
    return Audit(
        entry_id=view.entry_id,
        at=time_of(view.timestamp),
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
        open_until=None if until is None else microseconds_of(time_of(until)),
        timeout=view.timeout_seconds,
    )
