"""Decoding schedules: what those only need who fire them, a server does not tell."""

from __future__ import annotations

import msgspec

from fairlane.core.model import Spec, microseconds_of
from fairlane.core.priority import MICROSECONDS, band_of, level_of
from fairlane.core.recurrence import Cron, Every, Recurrence
from fairlane.core.schedules import Pause, Policy, Schedule, ScheduleRun, Standing, Template
from fairlane.core.submission import DEFAULT_TIMEOUT
from fairlane.wire.schedule_views import ScheduledTaskView, ScheduleView
from fairlane.wire.times import Moment, microseconds_or_none, time_of


def schedule_of(view: ScheduleView) -> Schedule:
    """Return the schedule that JSON shows. What only those need who fire it is not told."""
    return Schedule(
        schedule_id=view.schedule_id,
        rule=_rule_of(view),
        template=_template_of(view.task),
        payload=bytes(view.task.parameters),
        policy=Policy(
            missed=view.missed,
            most=view.most,
            within=view.within_seconds,
            overlap=view.overlap,
            jitter=view.jitter_seconds,
            starts_at=microseconds_or_none(view.starts_at),
            ends_at=microseconds_or_none(view.ends_at),
            count=view.count,
            pause_after_failures=view.pause_after_failures,
        ),
        note=view.note,
        standing=_standing_of(view),
    )


def _standing_of(view: ScheduleView) -> Standing:
    pause = view.pause
    return Standing(
        since=_microseconds(view.handled_until),
        tick=microseconds_or_none(view.next_at),
        last_at=microseconds_or_none(view.last_at),
        last_task=view.last_task_id,
        failures=view.failures,
        left=view.remaining,
        fired=view.totals.fired,
        skipped=view.totals.skipped,
        missed=view.totals.missed,
        pause=None
        if pause is None
        else Pause(_microseconds(pause.since), microseconds_or_none(pause.until), pause.note),
        source=view.source,
        owner=view.owner or "",
        seen_at=_microseconds(view.declared_at),
        created_at=_microseconds(view.created_at),
        updated_at=_microseconds(view.updated_at),
        version=view.version,
        fingerprint=bytes.fromhex(view.fingerprint),
        runs=tuple(
            ScheduleRun(
                _microseconds(each.tick), each.outcome, each.task_id, each.count, each.reason
            )
            for each in reversed(view.runs)
        ),
    )


def _template_of(view: ScheduledTaskView) -> Template:
    level = level_of(view.priority)
    timeout = view.timeout_seconds
    timed = not isinstance(timeout, msgspec.UnsetType)
    return Template(
        type=view.task_type,
        queue=view.queue,
        capabilities=view.required_capabilities,
        level=level,
        max_retries=view.max_retries,
        timeout=DEFAULT_TIMEOUT[band_of(level)]
        if isinstance(timeout, msgspec.UnsetType)
        else timeout,
        delay=view.delay_seconds,
        spec=Spec(
            retry=view.retry_policy.policy(),
            tags=dict(view.tags),
            trace_id=view.trace_id or None,
            traceparent=view.traceparent or None,
            timed=timed,
        ),
    )


def _rule_of(view: ScheduleView) -> Recurrence:
    if view.cron is not None:
        return Cron(view.cron, view.tz or "UTC")
    interval, offset = view.every_seconds or 0.0, view.offset_seconds or 0.0
    return Every(round(interval * MICROSECONDS), round(offset * MICROSECONDS))


def _microseconds(text: Moment) -> int:
    return microseconds_of(time_of(text))
