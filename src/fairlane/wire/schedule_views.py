"""Schedules as the API and `--json` show them, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from fairlane.core import firing, limits
from fairlane.core.priority import shown_as
from fairlane.core.recurrence import Tick
from fairlane.core.schedules import (
    Missed,
    Outcome,
    Overlap,
    Schedule,
    ScheduleRun,
    ScheduleState,
    Source,
    Template,
)
from fairlane.wire.policies import RetryView
from fairlane.wire.schedules import rule_fields
from fairlane.wire.tasks import Object
from fairlane.wire.times import Moment, iso, iso_of, iso_of_or_none

UPCOMING = 5
LISTED_UPCOMING = 1
LISTED_RUNS = 30


class TickView(msgspec.Struct, frozen=True):
    """A tick to come: in UTC, and in the time zone of the schedule. `note`: what the clock does."""

    at: Moment
    local: str
    note: str | None


class RunView(msgspec.Struct, frozen=True):
    """What became of a tick, or of `count` ticks in a row of which this is the newest."""

    tick: Moment
    outcome: Outcome
    task_id: str | None
    count: int
    reason: str


class PauseView(msgspec.Struct, frozen=True):
    """A pause. `until` is null if it lasts until somebody resumes the schedule."""

    since: Moment
    until: Moment | None
    note: str


class Totals(msgspec.Struct, frozen=True):
    """How many ticks were fired, skipped (overlapping, paused or refused), and missed."""

    fired: int
    skipped: int
    missed: int


class ScheduledTaskView(msgspec.Struct, frozen=True, kw_only=True):
    """What the tasks of a schedule have in common. Without `timeout_seconds` they have the limit of
    their type, or of their priority."""

    task_type: str
    parameters: Object
    queue: str
    priority: str | int
    required_capabilities: tuple[str, ...]
    max_retries: int
    timeout_seconds: float | msgspec.UnsetType | None = msgspec.UNSET
    delay_seconds: float
    tags: Mapping[str, str]
    trace_id: str | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | msgspec.UnsetType = msgspec.UNSET
    retry_policy: RetryView


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: what was declared, and how far it has come. The last 100 runs, the newest first;
    in lists the last 30 unless more are asked for, and one tick to come."""

    schedule_id: str
    cron: str | None
    tz: str | None
    every_seconds: float | None
    offset_seconds: float | None
    in_words: str
    task: ScheduledTaskView
    missed: Missed
    most: int
    within_seconds: float
    overlap: Overlap
    jitter_seconds: float
    starts_at: Moment | None
    ends_at: Moment | None
    count: int | None
    pause_after_failures: int | None
    note: str
    version: int
    """Grows with every change by somebody, not by firing. It is the ETag, too."""
    fingerprint: str
    """What two declarations share if nothing has changed."""
    source: Source
    owner: str | None
    """The application whose code declares it."""
    declared_at: Moment
    """When it was declared last."""
    state: ScheduleState
    pause: PauseView | None
    next_at: Moment | None
    upcoming: tuple[TickView, ...]
    problem: str | None
    """Why the server cannot tell them, and does not fire the schedule."""
    handled_until: Moment
    """The ticks up to this time have been handled."""
    last_at: Moment | None
    """The newest tick that was fired."""
    last_task_id: str | None
    failures: int
    """How many tasks failed in a row."""
    remaining: int | None
    totals: Totals
    created_at: Moment
    updated_at: Moment
    runs: tuple[RunView, ...]


class ScheduleList(msgspec.Struct, frozen=True):
    """Schedules, those first that are due next. `next_cursor`: where to continue, null at the
    end."""

    schedules: tuple[ScheduleView, ...]
    next_cursor: str | None


class ScheduleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cursor of the page, its size, and how many of the last runs of each are shown."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.SCHEDULE_PAGE)] = limits.SCHEDULE_PAGE
    cursor: str | None = None
    runs: Annotated[int, msgspec.Meta(ge=0, le=limits.SCHEDULE_RUNS)] = LISTED_RUNS


class SchedulesReply(msgspec.Struct, frozen=True):
    """The schedules as they stand, in the order of the request."""

    schedules: tuple[ScheduleView, ...]


def encode_schedule(
    schedule: Schedule, *, upcoming: int = UPCOMING, runs: int = limits.SCHEDULE_RUNS
) -> ScheduleView:
    """Return a schedule as JSON shows it, with so many of its ticks to come and its last runs."""
    standing, policy, pause = schedule.standing, schedule.policy, schedule.standing.pause
    ticks = firing.upcoming(schedule, upcoming)
    rule = {"cron": None, "tz": None, "every_seconds": None, "offset_seconds": None}
    return ScheduleView(
        schedule_id=schedule.schedule_id,
        **rule | rule_fields(schedule.rule),
        in_words=schedule.rule.in_words(),
        task=_task_view(schedule.template, schedule.payload),
        missed=policy.missed,
        most=policy.most,
        within_seconds=policy.within,
        overlap=policy.overlap,
        jitter_seconds=policy.jitter,
        starts_at=iso_of_or_none(policy.starts_at),
        ends_at=iso_of_or_none(policy.ends_at),
        count=policy.count,
        pause_after_failures=policy.pause_after_failures,
        note=schedule.note,
        version=standing.version,
        fingerprint=standing.fingerprint.hex(),
        source=standing.source,
        owner=standing.owner or None,
        declared_at=iso_of(standing.seen_at),
        state=schedule.state,
        pause=None
        if pause is None
        else PauseView(iso_of(pause.since), iso_of_or_none(pause.until), pause.note),
        next_at=iso_of_or_none(firing.next_at(schedule, ticks)),
        upcoming=encode_ticks(ticks),
        problem=schedule.problem,
        handled_until=iso_of(standing.since),
        last_at=iso_of_or_none(standing.last_at),
        last_task_id=standing.last_task,
        failures=standing.failures,
        remaining=standing.left,
        totals=Totals(standing.fired, standing.skipped, standing.missed),
        created_at=iso_of(standing.created_at),
        updated_at=iso_of(standing.updated_at),
        runs=tuple(map(_run_view, standing.runs[::-1][:runs])),
    )


def encode_listed(
    schedules: Iterable[Schedule], runs: int = LISTED_RUNS
) -> tuple[ScheduleView, ...]:
    """Return schedules as lists show them."""
    return tuple(encode_schedule(each, upcoming=LISTED_UPCOMING, runs=runs) for each in schedules)


def encode_ticks(ticks: Iterable[Tick]) -> tuple[TickView, ...]:
    """Return ticks to come as JSON shows them."""
    return tuple(TickView(iso(each.at), each.at.isoformat(), each.note) for each in ticks)


def _task_view(template: Template, payload: bytes) -> ScheduledTaskView:
    spec = template.spec
    return ScheduledTaskView(
        task_type=template.type,
        parameters=msgspec.Raw(payload),
        queue=template.queue,
        priority=shown_as(template.level),
        required_capabilities=template.capabilities,
        max_retries=template.max_retries,
        timeout_seconds=template.timeout if spec.timed else msgspec.UNSET,
        delay_seconds=template.delay,
        tags=spec.tags,
        trace_id=spec.trace_id or msgspec.UNSET,
        traceparent=spec.traceparent or msgspec.UNSET,
        retry_policy=RetryView.of(spec.retry),
    )


def _run_view(run: ScheduleRun) -> RunView:
    return RunView(iso_of(run.tick), run.outcome, run.task_id, run.count, run.reason)
