"""Recurrences against a search over all minutes, on the days on which the clock is set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import microseconds_of, moment
from fairlane.core.recurrence import (
    Every,
    Recurrence,
    count_ticks,
    cron,
    every,
    newest_tick,
    newest_ticks,
    next_tick,
    preview,
    ticks_between,
)
from fairlane.core.zones import zone_of
from tests.unit.make import quick

ZONES = {
    "Africa/Casablanca": 2025,  # an hour back for Ramadan
    "America/New_York": 2025,
    "America/Sao_Paulo": 2017,  # at midnight
    "America/St_Johns": 2025,
    "Asia/Kathmandu": 2025,
    "Asia/Tehran": 2021,
    "Australia/Lord_Howe": 2025,  # by half an hour
    "Europe/Berlin": 2025,
    "Europe/Dublin": 2025,  # summer is the standard time
    "Pacific/Apia": 2011,  # without the 30th of December 2011
    "Pacific/Chatham": 2025,  # at a quarter to three
    "UTC": 2025,
}
"""Two years from the beginning of this one."""

EXPRESSIONS = [
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "0,15,45 0-3 * * *",
    "59 23 31 * *",
    "5 4 29 2 *",
    "0 0 13 * 5",  # the 13th, and Fridays
    "0 0 */2 * MON",  # Mondays that are odd
    "0 12 * 3,10,12 SUN",
    "0 * * * *",
    "*/15 2 * * *",
    "20 */2 * * *",
    "* 1,2 * * *",
]

MINUTE = timedelta(minutes=1)
QUARTER = 15 * MINUTE


class Quarter(NamedTuple):
    """A quarter of an hour, within which nobody sets a clock. What a clock shows at its beginning,
    and which times it skips after its end."""

    utc: datetime
    local: datetime
    skipped: list[datetime]


@lru_cache(maxsize=1)
def quarters(zone: str, begin: datetime, end: datetime) -> list[Quarter]:
    found = []
    utc, local = begin, begin.astimezone(zone_of(zone))
    while utc < end:
        expected = local.replace(tzinfo=None) + QUARTER
        following = (utc + QUARTER).astimezone(zone_of(zone))
        gap = (following.replace(tzinfo=None) - expected) // MINUTE
        found.append(Quarter(utc, local, [expected + n * MINUTE for n in range(gap)]))
        utc, local = utc + QUARTER, following
    return found


class Oracle:
    """Debian's rules, applied to one minute after the other."""

    def __init__(self, expression: str) -> None:
        minute, hour, day, month, weekday = expression.split()
        self._minutes = values(minute, 0, 59)
        self._hours = values(hour, 0, 23)
        self._days = values(day, 1, 31)
        self._months = values(month, 1, 12)
        self._weekdays = values(weekday.replace("MON", "1").replace("SUN", "0"), 0, 6)
        self._both = day.startswith("*") or weekday.startswith("*")
        self._real_time = minute.startswith("*") or hour.startswith("*")

    def _in(self, local: datetime) -> bool:
        """Whether it fires in this hour, if in this minute."""
        if local.hour not in self._hours or local.month not in self._months:
            return False
        judged = local.day in self._days, local.isoweekday() % 7 in self._weekdays
        return all(judged) if self._both else any(judged)

    def ticks(self, zone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
        """All of them from `begin` to before `end`."""
        missed = False
        for utc, local, skipped in quarters(zone, begin, end):
            if missed and not (self._in(local) and local.minute in self._minutes):
                yield utc
            if self._in(local) and (self._real_time or not local.fold):
                for n in range(15):
                    if local.minute + n in self._minutes:
                        yield utc + n * MINUTE
            missed = not self._real_time and any(
                self._in(each) and each.minute in self._minutes for each in skipped
            )


def values(field: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        bounds = (least, most) if span == "*" else (int(first), int(last or first))
        found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return found


def between(rule: Recurrence, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    for tick in rule.after(microseconds_of(begin) - 1):
        if tick >= microseconds_of(end):
            break
        found.append(moment(tick))
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_two_years_agree_with_a_search(zone: str) -> None:
    begin, end = (datetime(ZONES[zone] + years, 1, 1, tzinfo=UTC) for years in (0, 2))
    for expression in EXPRESSIONS:
        expected = list(Oracle(expression).ticks(zone, begin, end))
        assert between(cron(expression, zone), begin, end) == expected
        assert expected or expression == "5 4 29 2 *"


def changes(zone: str) -> list[datetime]:
    """When the clock is set there, to the hour."""
    begin = datetime(ZONES[zone], 1, 1, tzinfo=UTC)
    hours = [begin + timedelta(hours=each) for each in range(2 * 365 * 24)]
    offsets = [each.astimezone(zone_of(zone)).utcoffset() for each in hours]
    return [hours[n] for n, (one, two) in enumerate(pairwise(offsets)) if one != two] or [begin]


CHANGES = [(zone, at) for zone in ZONES for at in changes(zone)]


def field(least: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.integers(least, most)
    steps = st.integers(1, most).map(lambda step: f"*/{step}")
    lists = st.lists(numbers.map(str), min_size=1, max_size=4).map(",".join)
    spans = st.tuples(numbers, numbers).map(lambda pair: "{}-{}".format(*sorted(pair)))
    return st.one_of(st.just("*"), steps, lists, spans)


@quick
@given(
    change=st.sampled_from(CHANGES),
    before=st.integers(0, 2 * 24 * 4),
    fields=st.tuples(field(0, 59), field(0, 4), field(1, 28), field(1, 12), field(0, 6)),
)
def test_any_expression_agrees_with_a_search(
    change: tuple[str, datetime], before: int, fields: tuple[str, ...]
) -> None:
    """Around the moments at which a clock is set, wherever one begins to look."""
    zone, at = change
    begin, end = at - before * QUARTER, at + timedelta(days=2)
    expression = " ".join(fields)
    expected = list(Oracle(expression).ticks(zone, at - timedelta(days=3), end))
    found = between(cron(expression, zone), begin, end)
    assert found == [tick for tick in expected if tick >= begin]


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("@hourly", "2026-01-01T01:00"),
        ("@daily", "2026-01-02T00:00"),
        (" @Weekly ", "2026-01-04T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("0 9 L * *", "2026-01-31T09:00"),
        ("0 9 LW * *", "2026-01-30T09:00"),
        ("0 9 * * mon#1", "2026-01-05T09:00"),
        ("0 9 * * 5L", "2026-01-30T09:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
    ],
)
def test_what_else_can_be_said(expression: str, first: str) -> None:
    begin = microseconds_of(datetime(2026, 1, 1, tzinfo=UTC))
    tick = next_tick(cron(expression), begin)
    assert tick is not None
    assert moment(tick).isoformat().startswith(first)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("60 * * * *", "minute '60' .* takes 0-59"),
        ("*/0 * * * *", r"minute '\*/0'"),
        ("0 24 * * *", "hour '24' .* takes 0-23"),
        ("0 0 32 * *", "day of month '32'"),
        ("0 0 * 13 *", "month '13'"),
        ("0 0 * * 8", "day of week '8'"),
        ("0 0 5-1 * *", "day of month '5-1'"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 2,4,6 *", "never fires"),
        ("0 0 */31 * MON#3", "never fires"),
        ("0 0 * * * *", "six fields.*every="),
        ("0 0 ? * *", r"Use \* in place of \?"),
        ("@reboot", "@hourly, @daily"),
        ("* * * *", "five fields .* not 4"),
        ("", "five fields"),
        ("*" * 10_000, "at most 200 characters"),
        (5, "at most 200 characters"),
    ],
)
def test_expressions_that_are_refused(expression: str, message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        cron(expression)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Europe", "/etc/passwd", "../UTC", "", "\0", 7])
def test_zones_that_are_refused(zone: str) -> None:
    with pytest.raises(InvalidSchedule, match="Use a name like Europe/Berlin"):
        cron("@daily", zone)


def test_intervals_are_counted_from_1970() -> None:
    rule = every(timedelta(minutes=5), offset=30)
    begin = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    ticks = [moment(each) for each in islice(rule.after(microseconds_of(begin)), 2)]
    assert ticks == [begin + timedelta(minutes=5), begin + timedelta(minutes=10)]
    assert next_tick(rule, microseconds_of(begin) - 1) == microseconds_of(begin)


@pytest.mark.parametrize(
    ("interval", "offset", "message"),
    [
        (0, 0, "at least one second"),
        (0.5, 0, "at least one second"),
        (-60, 0, "at least one second"),
        (float("nan"), 0, "at least one second"),
        (float("inf"), 0, "at most 100 years"),
        (True, 0, "a number of seconds"),
        ("5m", 0, "a number of seconds"),
        (60, 60, "less than the interval"),
        (60, timedelta(seconds=-1), "at least 0"),
    ],
)
def test_intervals_that_are_refused(interval: float, offset: float, message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        every(interval, offset)


@pytest.mark.parametrize("rule", [cron("@yearly"), cron("@yearly", "Pacific/Apia"), every(86_400)])
def test_time_comes_to_an_end(rule: Recurrence) -> None:
    last = microseconds_of(datetime(9999, 12, 31, 23, 59, tzinfo=UTC))
    assert next_tick(rule, last) is None
    ticks = list(rule.after(last - 2 * 366 * 86_400 * 1_000_000))
    assert newest_tick(rule, ticks[0], last) == ticks[-1]
    assert newest_ticks(rule, ticks[0], last, 1_000) == ticks[1:]


@quick
@given(
    rule=st.sampled_from([cron("* * * * *"), cron("30 2 * * *", "Europe/Berlin"), every(7)]),
    after=st.integers(0, 3_000_000_000_000),
    length=st.integers(0, 5_000_000) | st.integers(0, 3_000_000_000_000),
)
def test_the_newest_tick_is_the_last_one_in_between(
    rule: Recurrence, after: int, length: int
) -> None:
    begin = microseconds_of(datetime(2026, 3, 1, tzinfo=UTC)) + after
    until = begin + length
    newest = newest_tick(rule, begin, until)
    if newest is None:
        following = next_tick(rule, begin)
        assert following is not None
        assert following > until
    else:
        following = next_tick(rule, newest)
        assert following is not None
        assert begin < newest <= until < following


@quick
@given(
    rule=st.sampled_from([cron("*/7 * * * *"), cron("30 2 * * *", "Europe/Berlin"), every(700, 5)]),
    after=st.integers(0, 300_000),
    length=st.integers(-10, 300_000),
    most=st.integers(1, 400),
)
def test_ticks_in_between(rule: Recurrence, after: int, length: int, most: int) -> None:
    """All ways to look at them agree with looking at one after the other."""
    begin = microseconds_of(datetime(2026, 3, 28, tzinfo=UTC)) + after * 1_000_000
    until = begin + length * 1_000_000
    all_of_them = list(takewhile(lambda tick: tick <= until, rule.after(begin)))
    count = len(all_of_them)
    assert newest_ticks(rule, begin, until, most) == all_of_them[-most:]
    counted = count if isinstance(rule, Every) else min(count, most)
    assert count_ticks(rule, begin, until, most) == counted
    assert ticks_between(rule, begin + 1, until + 1, most) == all_of_them[:most]


def test_the_newest_of_many_ticks_is_found_at_once() -> None:
    """Of a rule that fires every minute since 1970, which 30 million looks would find."""
    until = microseconds_of(datetime(2026, 3, 1, tzinfo=UTC))
    assert newest_tick(cron("* * * * *"), 0, until) == until


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (cron("30 2 * * MON-FRI", "Europe/Berlin"), "At 02:30 on Monday through Friday"),
        (cron("@daily"), "At 00:00 every day, UTC"),
        (every(60), "Every minute"),
        (every(timedelta(hours=36)), "Every 36 hours"),
        (every(300, 30), "Every 5 minutes, 30 seconds later"),
        (every(2.5), "Every 2.5 seconds"),
    ],
)
def test_in_words(rule: Recurrence, words: str) -> None:
    assert rule.in_words().startswith(words)


@pytest.mark.parametrize(
    ("expression", "after", "notes"),
    [
        ("30 2 * * *", "2026-03-28T12:00", ["set forward past its time", None]),
        ("0 12 * * *", "2026-03-28T12:00", ["set forward by 1 hour", None]),
        ("30 2 * * *", "2026-10-24T12:00", ["comes twice.*the first time only", "back by 1 hour"]),
        ("30 * * * *", "2026-10-25T00:00", ["comes twice.*both times", "comes twice.*both times"]),
    ],
)
def test_what_the_clock_does_is_noted(expression: str, after: str, notes: list[str | None]) -> None:
    begin = microseconds_of(datetime.fromisoformat(f"{after}+00:00"))
    ticks = preview(cron(expression, "Europe/Berlin"), begin, 2)
    for tick, note in zip(ticks, notes, strict=True):
        assert re.search(note or "^$", tick.note or "")


def test_intervals_need_no_notes() -> None:
    begin = microseconds_of(datetime(2026, 3, 28, tzinfo=UTC))
    assert [tick.note for tick in preview(every(86_400), begin, 3)] == [None] * 3
