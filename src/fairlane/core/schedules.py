"""Schedules: tasks that are submitted again and again, by a rule.

A rule (`recurrence`) says at which moments, the ticks. A policy says what happens to a tick that
nobody fired in time, or whose previous task has not ended. `firing` decides about the ticks that
are due; `scheduling` has the operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from fairlane.core import blobs, limits
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import NewTask, Spec, microseconds_of
from fairlane.core.recurrence import Cron, Recurrence
from fairlane.core.submission import DEFAULT_QUEUE
from fairlane.core.text import NAME_RULE, is_name, is_plain, shown
from fairlane.core.zones import zone_of

DAY: Final = 86_400.0
RESERVED: Final = frozenset({"preview"})
"""Ids that no schedule can have: addresses of the API are called so."""


class Missed(StrEnum):
    """What becomes of ticks that lie in the past when a process looks, but for the newest one."""

    SKIP = "skip"
    """They are left out, and so is the newest one if it is more than a minute late."""
    ONCE = "once"
    """The newest one is fired for all of them."""
    ALL = "all"
    """They are fired, one after the other. With `Overlap.QUEUE` one of them is, and one waits."""


class Overlap(StrEnum):
    """What becomes of a tick while the task of the previous one has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    """Its task waits for the end of the previous one. If one waits already, the tick is skipped."""
    REPLACE = "replace"
    """The previous task is cancelled."""
    ALLOW = "allow"


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a schedule is fired. Durations are in seconds, times in microseconds."""

    missed: Missed = Missed.ONCE
    most: int = 100
    """How many missed ticks are fired at the most, by `Missed.ALL`: the newest ones."""
    within: float = DAY
    """Ticks that should have been fired longer ago are never fired."""
    overlap: Overlap = Overlap.SKIP
    jitter: float = 0.0
    starts_at: int | None = None
    ends_at: int | None = None
    count: int | None = None
    """How many ticks are fired, until the schedule ends."""
    pause_after_failures: int | None = None


DEFAULT_POLICY: Final = Policy()


class Template(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the tasks of a schedule have in common, but for their payload."""

    type: str
    queue: str = DEFAULT_QUEUE
    capabilities: tuple[str, ...] = ()
    level: int = 5
    max_retries: int = 3
    timeout: float | None = None
    delay: float = 0.0
    spec: Spec = Spec()

    def task(self, task_id: str, payload: bytes, spec: Spec, *, chosen: bool = False) -> NewTask:
        """Return a task like this."""
        return NewTask(
            task_id=task_id,
            type=self.type,
            queue=self.queue,
            capabilities=self.capabilities,
            level=self.level,
            payload=payload,
            max_retries=self.max_retries,
            timeout=self.timeout,
            delay=self.delay,
            spec=spec,
            chosen=chosen,
        )


class NewSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to be stored: what somebody declares. Made by `new_schedule`, which checks it."""

    schedule_id: str
    rule: Recurrence
    template: Template
    payload: bytes
    policy: Policy = DEFAULT_POLICY
    note: str = ""
    fingerprint: bytes = b""
    """What two declarations share if nothing has changed."""


class Outcome(StrEnum):
    """What became of a tick."""

    FIRED = "fired"
    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    REFUSED = "refused"
    """The store did not take its task, for example because there are too many lanes."""
    MANUAL = "manual"
    """Somebody ran the schedule, or fired a tick of the past again. It counts as no tick."""


class ScheduleRun(msgspec.Struct, frozen=True, array_like=True):
    """What became of a tick, or of several in a row. Times are microseconds.

    `count`: how many ticks, of which `tick` is the newest. Thousands of ticks that were not fired
    are not counted to the end: then it is a lower bound.
    """

    tick: int
    outcome: Outcome
    task_id: str | None = None
    count: int = 1
    reason: str = ""


class Pause(msgspec.Struct, frozen=True, array_like=True):
    """Since when, until when (None: until somebody resumes it), and why a schedule is paused."""

    since: int
    until: int | None = None
    note: str = ""


class Source(StrEnum):
    """Who declares a schedule."""

    API = "api"
    CODE = "code"
    """An application, whose workers declare it again and again."""


class ScheduleState(StrEnum):
    """Whether a schedule fires. `ended`: it has no tick any more."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a schedule has come. Times are microseconds."""

    since: int
    """The ticks after this time have not been handled."""
    tick: int | None = None
    """The next tick. None: there is none any more."""
    last_at: int | None = None
    """The newest tick that was fired."""
    last_task: str | None = None
    unjudged: tuple[str, ...] = ()
    """Tasks of which it was not counted yet how they ended, the oldest first."""
    judged_at: int = 0
    """When somebody looked at those last, if the schedule is paused after failures."""
    failures: int = 0
    """How many tasks failed in a row."""
    left: int | None = None
    """How many ticks are still to be fired, if the policy has a count."""
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    pause: Pause | None = None
    catch_up: Missed | None = None
    """What becomes of the ticks of a pause that is over."""
    catch_up_until: int = 0
    """The end of that pause."""
    source: Source = Source.API
    owner: str = ""
    seen_at: int = 0
    created_at: int = 0
    updated_at: int = 0
    version: int = 1
    """Grows with every change by somebody, not by firing."""
    fingerprint: bytes = b""
    runs: tuple[ScheduleRun, ...] = ()
    """The last ones, the oldest first."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it stands."""

    schedule_id: str
    rule: Recurrence
    template: Template
    payload: bytes
    policy: Policy
    note: str
    standing: Standing

    @property
    def state(self) -> ScheduleState:
        """Return whether it fires."""
        if self.standing.pause is not None:
            return ScheduleState.PAUSED
        return ScheduleState.ENDED if self.standing.tick is None else ScheduleState.ACTIVE

    @property
    def zone(self) -> str:
        """Return the time zone in which its ticks are shown."""
        return self.rule.zone if isinstance(self.rule, Cron) else "UTC"

    @property
    def problem(self) -> str | None:
        """Return why this process cannot fire it, nor tell when it fires; None if it can."""
        try:
            zone_of(self.zone)
        except InvalidSchedule:
            return (
                f"The time zone {shown(self.zone)} is not known here: another process may know it "
                "and fire the schedule. Install a newer tzdata, and start this process again."
            )
        return None


# Checks. They are applied where a schedule comes in, and change nothing.

E = TypeVar("E", Missed, Overlap)


def new_schedule(
    schedule_id: str,
    rule: Recurrence,
    task: NewTask,
    *,
    missed: Missed | str = Missed.ONCE,
    most: int = 100,
    within: Seconds = DAY,
    overlap: Overlap | str = Overlap.SKIP,
    jitter: Seconds = 0,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    count: int | None = None,
    pause_after_failures: int | None = None,
    note: str = "",
) -> NewSchedule:
    """Return a schedule with everything checked."""
    policy = Policy(
        missed=_choice(Missed, "missed", missed),
        most=_whole("most", most, limits.SUBMIT_BATCH),
        within=_seconds("within", within, 1.0),
        overlap=_choice(Overlap, "overlap", overlap),
        jitter=_seconds("jitter", jitter, 0.0),
        starts_at=_time("starts_at", starts_at),
        ends_at=_time("ends_at", ends_at),
        count=None if count is None else _whole("count", count, limits.SCHEDULE_COUNT),
        pause_after_failures=None
        if pause_after_failures is None
        else _whole("pause_after_failures", pause_after_failures, limits.SCHEDULE_COUNT),
    )
    if policy.starts_at is not None and policy.ends_at is not None:
        if policy.ends_at < policy.starts_at:
            raise InvalidSchedule("The schedule ends before it starts: see starts_at and ends_at.")
    checked_note(note)
    template, payload = _template_of(task), task.payload
    if policy.missed is Missed.ALL and policy.most > most_at_once(payload):
        raise InvalidSchedule(
            f"With this payload at most {most_at_once(payload):,} missed ticks are fired, not "
            f"{policy.most:,}: choose a smaller most, or submit less."
        )
    said = msgspec.json.encode([_said(rule), _said(template), _said(policy), note], order="sorted")
    return NewSchedule(
        schedule_id=checked_id(schedule_id),
        rule=rule,
        template=template,
        payload=payload,
        policy=policy,
        note=note,
        fingerprint=blake2b(said + payload, digest_size=16).digest(),
    )


def most_at_once(payload: bytes) -> int:
    """Return how many tasks with a payload one schedule may submit at once."""
    return limits.TICKS_BYTES // max(1, len(payload))


def _said(value: object) -> object:
    """Return a struct without the fields that have their defaults, so that a field that is added
    one day changes no fingerprint.

    The encoder leaves out what is the default itself, and not always what equals it.
    """
    if not isinstance(value, msgspec.Struct):
        return value
    fields = msgspec.structs.fields(value)
    values = ((field, getattr(value, field.name)) for field in fields)
    return {field.name: _said(each) for field, each in values if each != field.default}


def is_schedule_id(value: object) -> TypeGuard[str]:
    """Return whether a schedule can have this id."""
    return is_name(value) and len(value) <= limits.SCHEDULE_ID_LENGTH and value not in RESERVED


def checked_id(schedule_id: object) -> str:
    """Return the id, if a schedule can have it."""
    if is_schedule_id(schedule_id):
        return schedule_id
    if isinstance(schedule_id, str) and schedule_id in RESERVED:
        raise InvalidSchedule(
            f"No schedule can have the id {schedule_id}, because an address of the API is called "
            "so: choose another id."
        )
    raise InvalidSchedule(
        f"A schedule's id has {NAME_RULE}, and at most {limits.SCHEDULE_ID_LENGTH} of them. "
        f"Got {shown(schedule_id)}."
    )


def checked_owner(owner: object) -> str | None:
    """Return the name of the application that declares schedules, if one does."""
    if owner is None or is_name(owner):
        return owner
    raise InvalidSchedule(f"The name of an application has {NAME_RULE}. Got {shown(owner)}.")


def checked_note(note: object) -> str:
    """Return the note, if a schedule or its pause can have it."""
    if is_plain(note, limits.SCHEDULE_NOTE_CHARACTERS):
        return note
    raise InvalidSchedule(
        f"A note is a text of at most {limits.SCHEDULE_NOTE_CHARACTERS:,} characters on one line. "
        f"Got {shown(note)}."
    )


def _template_of(task: NewTask) -> Template:
    """Return what a task says that goes for all tasks of a schedule."""
    once = {
        "idempotency_key": task.idempotency_key,
        "run_at": task.run_at,
        "expires_at": task.expires_at,
        "depends_on": task.depends_on or None,
        "inputs": task.spec.inputs or None,
        "task_id": task.task_id if task.chosen else None,
    }
    named = [name for name, value in once.items() if value is not None]
    if named:
        raise InvalidSchedule(
            f"The tasks of a schedule cannot all have the same {' and '.join(named)}: leave it out."
        )
    if task.unique is not None:
        raise InvalidSchedule(
            "The tasks of a schedule cannot be unique: its overlap says what happens while one "
            "of them has not ended. Leave unique out."
        )
    if blobs.parsed(task.payload) is not None:
        raise InvalidSchedule(
            "The payload of a schedule cannot be kept by reference: it has at most "
            f"{limits.PAYLOAD_BYTES:,} bytes."
        )
    return Template(
        type=task.type,
        queue=task.queue,
        capabilities=task.capabilities,
        level=task.level,
        max_retries=task.max_retries,
        timeout=task.timeout,
        delay=task.delay,
        spec=task.spec,
    )


def _whole(name: str, value: object, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise InvalidSchedule(f"{name} is a whole number from 1 to {most:,}. Got {shown(value)}.")


def _seconds(name: str, value: object, least: float) -> float:
    found: Any = in_seconds(value)
    if isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found):
        if least <= found <= limits.DELAY_SECONDS:
            return float(found)
    raise InvalidSchedule(
        f"{name} is a timedelta or a number of seconds from {least:g} to "
        f"{limits.DELAY_SECONDS:,.0f}. Got {shown(value)}."
    )


def _choice(kind: type[E], name: str, value: object) -> E:
    if isinstance(value, str) and value in tuple(kind):
        return kind(value)
    raise InvalidSchedule(f"{name} is one of {', '.join(kind)}. Got {shown(value)}.")


def checked_missed(value: object) -> Missed:
    """Return what a caller means by `missed`."""
    return _choice(Missed, "missed", value)


def checked_overlap(value: object) -> Overlap:
    """Return what a caller means by `overlap`."""
    return _choice(Overlap, "overlap", value)


def _time(name: str, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidSchedule(f"{name} is a datetime with a time zone. Got {shown(value)}.")
    try:
        return microseconds_of(value.astimezone(UTC))
    except OverflowError:
        raise InvalidSchedule(f"{name} lies outside the years 1 to 9999 in UTC.") from None


def checked_time(name: str, value: object) -> int:
    """Return a datetime with a time zone in microseconds."""
    found = _time(name, value)
    if found is None:
        raise InvalidSchedule(f"{name} is a datetime with a time zone. Got None.")
    return found


def kept(runs: Iterable[ScheduleRun]) -> tuple[ScheduleRun, ...]:
    """Return the runs that are kept: the newest ones."""
    return tuple(runs)[-limits.SCHEDULE_RUNS :]
