"""Schedules as users of the Python API get them: with datetimes, and values in place of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from fairlane.core import firing, limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import moment, moment_or_none
from fairlane.core.recurrence import Cron, Every, Tick
from fairlane.core.schedules import (
    Missed,
    Outcome,
    Overlap,
    ScheduleState,
    Source,
    checked_time,
)
from fairlane.core.schedules import Schedule as StoredSchedule
from fairlane.core.scheduling import SchedulePage, backfilled
from fairlane.core.text import shown
from fairlane.core.zones import zone_of
from fairlane.runtime.codecs import Codec
from fairlane.runtime.tasks import value_of

SHOWN_TICKS = 5


class ScheduleRun(msgspec.Struct, frozen=True):
    """What became of a tick, or of `count` ticks in a row, of which `tick` is the newest."""

    tick: datetime
    outcome: Outcome
    task_id: str | None
    count: int
    reason: str


class SchedulePause(msgspec.Struct, frozen=True):
    """Since when a schedule is paused, until when (None: until somebody resumes it), and why."""

    since: datetime
    until: datetime | None
    note: str


class ScheduleTotals(msgspec.Struct, frozen=True):
    """How many ticks were fired, skipped (overlap, pause, refused by the store) and missed."""

    fired: int
    skipped: int
    missed: int


class Preview(NamedTuple):
    """When a rule fires: in words, and its next ticks with notes about changes of the clock."""

    in_words: str
    ticks: list[Tick]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it stands. Ticks are in its time zone, other times in UTC."""

    schedule_id: str
    cron: str | None
    every: timedelta | None
    offset: timedelta
    tz: str
    task_type: str
    queue: str
    priority: int
    missed: Missed
    most: int
    within: timedelta
    overlap: Overlap
    jitter: timedelta
    starts_at: datetime | None
    ends_at: datetime | None
    count: int | None
    pause_after_failures: int | None
    note: str
    version: int
    """Grows with every change by somebody, not by firing."""
    source: Source
    owner: str | None
    """The name of the application whose code declares it."""
    state: ScheduleState
    pause: SchedulePause | None
    next_at: datetime | None
    """Its next tick. None: there is none, or nobody knows when the pause ends."""
    problem: str | None
    """Why this process cannot tell when it fires, nor fire it. Its times are in UTC then."""
    last_at: datetime | None
    last_task_id: str | None
    failures: int
    """How many of its tasks failed in a row."""
    remaining: int | None
    """How many ticks are still to be fired, if it has a count."""
    totals: ScheduleTotals
    runs: tuple[ScheduleRun, ...]
    """What became of the last 100 ticks, the newest first."""
    created_at: datetime
    updated_at: datetime
    stored: StoredSchedule
    """The schedule as it is stored, with the payload as bytes of JSON."""
    codecs: Mapping[str, Codec]

    def __repr__(self) -> str:
        return f"<Schedule {self.schedule_id} {self.state}>"

    @property
    def payload(self) -> Any:
        """Return the arguments of its tasks, by name."""
        return value_of(self.stored.payload, Any, self.codecs, "payload")

    @property
    def parameters(self) -> Any:
        """Return the arguments of its tasks, by the name that the HTTP API prints."""
        return self.payload

    @property
    def in_words(self) -> str:
        """Return when it fires, in words."""
        return self.stored.rule.in_words()

    def upcoming(self, n: int = SHOWN_TICKS) -> list[Tick]:
        """Return its next ticks, with notes about changes of the clock."""
        return firing.upcoming(self.stored, checked_number(n))

    def ticks(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the ticks from a time to before another: those that a backfill fires.

        Raises InvalidSchedule if there are more than 1,000.
        """
        begin, end = checked_time("since", since), checked_time("until", until)
        zone = zone_of(self.tz)
        return [moment(tick).astimezone(zone) for tick in backfilled(self.stored, begin, end)]


class ScheduleList(msgspec.Struct, frozen=True):
    """A page of schedules, and the cursor of the next page; None on the last page."""

    schedules: list[Schedule]
    next_cursor: str | None = None


def readable(stored: StoredSchedule, codecs: Mapping[str, Codec]) -> Schedule:
    """Return a schedule with its values."""
    rule, template = stored.rule, stored.template
    policy, standing = stored.policy, stored.standing
    pause, problem = standing.pause, stored.problem
    zone = zone_of("UTC" if problem else stored.zone)

    def local(tick: int | None) -> datetime | None:
        return None if tick is None else moment(tick).astimezone(zone)

    return Schedule(
        schedule_id=stored.schedule_id,
        cron=rule.expression if isinstance(rule, Cron) else None,
        every=timedelta(microseconds=rule.interval) if isinstance(rule, Every) else None,
        offset=timedelta(microseconds=rule.offset if isinstance(rule, Every) else 0),
        tz=stored.zone,
        task_type=template.type,
        queue=template.queue,
        priority=template.level,
        missed=policy.missed,
        most=policy.most,
        within=timedelta(seconds=policy.within),
        overlap=policy.overlap,
        jitter=timedelta(seconds=policy.jitter),
        starts_at=moment_or_none(policy.starts_at),
        ends_at=moment_or_none(policy.ends_at),
        count=policy.count,
        pause_after_failures=policy.pause_after_failures,
        note=stored.note,
        version=standing.version,
        source=standing.source,
        owner=standing.owner or None,
        state=stored.state,
        pause=None
        if pause is None
        else SchedulePause(moment(pause.since), moment_or_none(pause.until), pause.note),
        next_at=local(firing.next_at(stored, firing.upcoming(stored, 1))),
        problem=problem,
        last_at=local(standing.last_at),
        last_task_id=standing.last_task,
        failures=standing.failures,
        remaining=standing.left,
        totals=ScheduleTotals(standing.fired, standing.skipped, standing.missed),
        runs=tuple(
            ScheduleRun(
                moment(run.tick).astimezone(zone), run.outcome, run.task_id, run.count, run.reason
            )
            for run in reversed(standing.runs)
        ),
        created_at=moment(standing.created_at),
        updated_at=moment(standing.updated_at),
        stored=stored,
        codecs=codecs,
    )


def readable_page(page: SchedulePage, codecs: Mapping[str, Codec]) -> ScheduleList:
    """Return a page of schedules with their values."""
    return ScheduleList([readable(each, codecs) for each in page.schedules], page.next_cursor)


def checked_number(n: object) -> int:
    """Return how many ticks a caller wants. Raises InvalidSchedule."""
    if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= limits.SUBMIT_BATCH:
        return n
    raise InvalidSchedule(f"n is a whole number from 1 to {limits.SUBMIT_BATCH:,}. Got {shown(n)}.")
