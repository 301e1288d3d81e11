"""Recurrences: at which moments a schedule fires. Pure: nothing here knows the time.

A cron expression is read as Debian's cron reads it, in a time zone. If it names its hours and its
minutes, it fires once on a day on which the clock is set: a time that does not exist counts as the
moment after the gap, and of a time that comes twice the first one counts. If one of the two begins
with `*`, it fires in every minute that matches, and in no other.

An interval is counted from 1970, so that no deployment moves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final, NamedTuple

import msgspec
from cronsim import CronSim, CronSimError

from fairlane.core import limits
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import microseconds_of, moment
from fairlane.core.priority import MICROSECONDS
from fairlane.core.text import shown
from fairlane.core.zones import zone_of

MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS: Final = 5
DAYS: Final = 31
INTERVAL_SECONDS_LEAST: Final = 1.0
INTERVAL_SECONDS_MOST: Final = 100 * 366 * 86_400.0

_TAKES = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L (the last day) or LW (the last weekday)",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, 5L (the last Friday) or MON#1 (the first Monday)",
}
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """A cron expression of five fields, in a time zone. Made by `cron`, which checks it."""

    expression: str
    zone: str = "UTC"

    def after(self, time: int) -> Iterator[int]:
        """Return all ticks later than a time, in microseconds, up to the year 9999."""
        try:
            local = moment(time).astimezone(zone_of(self.zone))
            # The times that come once more are the same length earlier on the clock.
            begin = local.replace(tzinfo=None) - max(_repeated(local), _NO_TIME)
            for tick in self._moments(CronSim(self.expression, begin)):
                if tick > time:
                    yield tick
        except OverflowError:
            return

    def _moments(self, readings: Iterable[datetime]) -> Iterator[int]:
        """Return the moments at which a clock in the zone shows these times, in their order."""
        zone, daily = zone_of(self.zone), self.daily
        again: deque[int] = deque()
        last = None
        for reading in readings:
            local = reading.replace(tzinfo=zone)
            repeated = _repeated(local)
            if repeated >= _NO_TIME:
                at = microseconds_of(local)
            elif daily:
                at = _end_of_gap(local)
            else:
                continue
            while again and again[0] < at:
                yield again.popleft()
            if at != last:
                yield at
            if repeated > _NO_TIME and not daily:
                again.append(microseconds_of(local.replace(fold=1)))
            last = at

    @property
    def daily(self) -> bool:
        """Whether it names hours and minutes, and so fires once on the day of a change."""
        minute, hour, *_ = self.expression.split()
        return not minute.startswith("*") and not hour.startswith("*")

    def in_words(self) -> str:
        """Return when it fires, as a sentence without its end."""
        return f"{CronSim(self.expression, _START).explain()}, {self.zone}"


class Every(msgspec.Struct, frozen=True, tag="every"):
    """An interval in microseconds, counted from `offset` after the beginning of 1970. Made by
    `every`, which checks it."""

    interval: int
    offset: int = 0

    def after(self, time: int) -> Iterator[int]:
        """Return all ticks later than a time, in microseconds, up to the year 9999."""
        tick = time - (time - self.offset) % self.interval
        while (tick := tick + self.interval) <= _LAST:
            yield tick

    def in_words(self) -> str:
        """Return when it fires, as a sentence without its end."""
        length = _length(self.interval)
        words = f"Every {length.removeprefix('1 ')}"
        return f"{words}, {_length(self.offset)} later" if self.offset else words


Recurrence = Cron | Every

_NO_TIME = timedelta()
_START = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = microseconds_of(datetime.max.replace(tzinfo=UTC))


def rule_of(
    expression: str | None, zone: str | None, interval: Seconds | None, offset: Seconds | None
) -> Recurrence:
    """Return the rule that a caller means by `cron` with `tz`, or by `every` with `offset`."""
    if (expression is None) == (interval is None):
        raise InvalidSchedule("Give either cron or every: a cron expression, or an interval.")
    if interval is None:
        if offset is not None:
            raise InvalidSchedule("offset goes with every: a cron expression names its minutes.")
        return cron(expression or "", "UTC" if zone is None else zone)
    if zone is not None:
        raise InvalidSchedule("tz goes with cron: an interval is counted from 1970, in any zone.")
    return every(interval, 0 if offset is None else offset)


def cron(expression: str, zone: str = "UTC") -> Cron:
    """Return a cron expression, if there is a moment at which it fires."""
    if not isinstance(expression, str) or len(expression) > limits.CRON_LENGTH:
        raise InvalidSchedule(
            f"A cron expression is a text of at most {limits.CRON_LENGTH} characters. "
            f"Got {shown(expression)}."
        )
    plain = MACROS.get(expression.strip().lower(), expression.strip())
    _check_fields(plain)
    rule = Cron(plain, zone)
    zone_of(zone)
    try:
        if next_tick(rule, microseconds_of(_START)) is not None:
            return rule
    except CronSimError as error:
        _check_field(plain, str(error).removeprefix("Bad "))
    raise InvalidSchedule(f"{shown(plain)} never fires: none of its months has such a day.")


def _check_fields(expression: str) -> None:
    if expression.startswith("@"):
        raise InvalidSchedule(
            f"There is no {shown(expression)}. Use one of {', '.join(MACROS)}, or five fields."
        )
    fields = expression.split()
    if len(fields) == FIELDS + 1:
        raise InvalidSchedule(
            f"{shown(expression)} has six fields: seconds are not supported. Leave out the first "
            "one, or use an interval (every=) for what fires more often than once a minute."
        )
    if len(fields) != FIELDS:
        raise InvalidSchedule(
            f"A cron expression has five fields (minute, hour, day of month, month, day of week), "
            f"not {len(fields)}: {shown(expression)}."
        )
    if "?" in expression:
        raise InvalidSchedule(f"Use * in place of ? in {shown(expression)}.")


def _check_field(expression: str, name: str) -> None:
    """Raise InvalidSchedule because of a field, unless it names days that other months have."""
    value = expression.split()[list(_TAKES).index(name)]
    if name == "day-of-month" and value.isdecimal() and 1 <= int(value) <= DAYS:
        return
    raise InvalidSchedule(
        f"The {name.replace('-', ' ')} {shown(value)} of {shown(expression)} is wrong. It takes "
        f"{_TAKES[name]}; lists (1,3), ranges (1-5) and steps (*/2)."
    )


def every(interval: Seconds, offset: Seconds = 0) -> Every:
    """Return an interval, if it is one."""
    length, shift = in_seconds(interval), in_seconds(offset)
    if not _is_number(length) or not INTERVAL_SECONDS_LEAST <= length <= INTERVAL_SECONDS_MOST:
        raise InvalidSchedule(
            "An interval is a timedelta or a number of seconds, at least one second and at most "
            f"100 years. Got {shown(interval)}."
        )
    if not _is_number(shift) or not 0 <= shift < length:
        raise InvalidSchedule(
            "An offset is a timedelta or a number of seconds, at least 0 and less than the "
            f"interval. Got {shown(offset)}."
        )
    return Every(round(length * MICROSECONDS), round(shift * MICROSECONDS))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _repeated(local: datetime) -> timedelta:
    """Return how long after a time its clock shows it again. Less than nothing: never at all."""
    first, second = (local.replace(fold=fold).utcoffset() for fold in (0, 1))
    return (first or _NO_TIME) - (second or _NO_TIME)


def _end_of_gap(local: datetime) -> int:
    """Return the moment at which the clock was set forward past a time."""
    before = local.replace(fold=0).utcoffset()
    # With the offset before it the time lies after the gap, with the other one it lies before it.
    late, early = (microseconds_of(local.replace(fold=fold)) for fold in (0, 1))
    while late - early > MICROSECONDS:
        middle = (early + late) // 2
        if moment(middle).astimezone(local.tzinfo).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late - late % MICROSECONDS


@lru_cache(maxsize=4_096)
def next_two(rule: Recurrence, after: int) -> tuple[int, ...]:
    """Return the first two ticks later than a time, if there are any: with the second one it is
    known whether a due tick is the newest.

    Thousands of schedules may have the same rule and fire together.
    """
    return tuple(islice(rule.after(after), 2))


def next_tick(rule: Recurrence, after: int) -> int | None:
    """Return the first tick later than a time, if there is one."""
    return next(iter(next_two(rule, after)), None)


@lru_cache(maxsize=1_024)
def newest_tick(rule: Recurrence, after: int, until: int) -> int | None:
    """Return the last tick that is later than `after` and not later than `until`, if any.

    It looks further and further back, so that a million ticks in between cost nothing. After an
    outage, schedules with the same rule ask for the same.
    """
    first = [tick for tick in next_two(rule, after) if tick <= until]
    if len(first) < 2:  # as nearly always
        return first[0] if first else None
    newest, back = None, MICROSECONDS
    while newest is None:
        for tick in rule.after(max(after, until - back)):
            if tick > until:
                break
            newest = tick
        back *= 2
    return newest


def newest_ticks(rule: Recurrence, after: int, until: int, most: int) -> list[int]:
    """Return the last ticks, at most so many, that are later than `after` and not than `until`.

    Like `newest_tick` it looks further and further back.
    """
    return list(_newest_ticks(rule, after, until, most))


@lru_cache(maxsize=64)
def _newest_ticks(rule: Recurrence, after: int, until: int, most: int) -> tuple[int, ...]:
    found: deque[int] = deque(maxlen=most)
    back = MICROSECONDS
    begin = until
    while len(found) < most and begin > after:
        begin = max(after, until - back)
        found.clear()
        for tick in rule.after(begin):
            if tick > until:
                break
            found.append(tick)
        back *= 2
    return tuple(found)


@lru_cache(maxsize=1_024)
def count_ticks(rule: Recurrence, after: int, until: int, most: int) -> int:
    """Return how many ticks are later than `after` and not than `until`.

    Those of a cron expression are counted one by one, up to `most`.
    """
    if isinstance(rule, Every):
        begin, end = (time - rule.offset for time in (after, until))
        return max(0, end // rule.interval - begin // rule.interval)
    return sum(1 for _ in islice(takewhile(lambda tick: tick <= until, rule.after(after)), most))


def ticks_between(rule: Recurrence, since: int, until: int, most: int) -> list[int]:
    """Return the first ticks, at most so many, from a time to before another."""
    return list(islice(takewhile(lambda tick: tick < until, rule.after(since - 1)), most))


class Tick(NamedTuple):
    """A moment at which a schedule fires, in its zone, with a note if the clock is set near it."""

    at: datetime
    note: str | None


def preview(rule: Recurrence, after: int, count: int) -> list[Tick]:
    """Return the next ticks."""
    zone = zone_of(rule.zone if isinstance(rule, Cron) else "UTC")
    before = moment(after).astimezone(zone)
    ticks = []
    for time in islice(rule.after(after), count):
        at = moment(time).astimezone(zone)
        ticks.append(Tick(at, _note(rule, before, at)))
        before = at
    return ticks


def _note(rule: Recurrence, before: datetime, at: datetime) -> str | None:
    """Return what the clock does at a tick, or between the last one and this one."""
    if not isinstance(rule, Cron):
        return None
    parsed = CronSim(rule.expression, _START)
    if at.hour not in parsed.hours or at.minute not in parsed.minutes:
        return "The clock is set forward past its time: it fires right after that."
    if _repeated(at):
        times = "the first time only" if rule.daily else "both times"
        return f"This time comes twice, because the clock is set back: it fires {times}."
    change = (at.utcoffset() or _NO_TIME) - (before.utcoffset() or _NO_TIME)
    if not change:
        return None
    direction = "forward" if change > _NO_TIME else "back"
    length = _length(abs(change) // timedelta(microseconds=1))
    return f"Before it the clock is set {direction} by {length}."


def _length(microseconds: int) -> str:
    """Return a duration in words, in the largest unit of which it is a whole number."""
    size, name = next(
        (unit for unit in _UNITS if microseconds % (unit[0] * MICROSECONDS) == 0), _UNITS[-1]
    )
    number = microseconds / MICROSECONDS / size
    return f"{number:g} {name}" + ("" if number == 1 else "s")
