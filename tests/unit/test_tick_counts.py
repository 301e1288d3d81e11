"""Counts of ticks: exact, and of bounded size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.schedules import Outcome, ScheduleRun
from fairlane.core.tick_counts import LAG_BOUNDS, RECENT, Skip, TickCounts, decode, encode
from tests.unit.make import NOW, SECOND, quick, task_id

FIRED = ScheduleRun(NOW, Outcome.FIRED, task_id(1))
MISSED = ScheduleRun(NOW, Outcome.MISSED, None, 7)


def test_at_first_there_is_nothing() -> None:
    counts = TickCounts()
    assert (counts.outcomes, sum(counts.lags), counts.skips, counts.recent) == ({}, 0, 0, ())
    assert len(counts.lags) == len(LAG_BOUNDS) + 1


def test_ticks_are_counted_by_outcome() -> None:
    handled = [("a", FIRED), ("a", MISSED), ("b", FIRED), ("b", MISSED)]
    counts = TickCounts().counted(NOW, handled, [0, 0])
    assert counts.outcomes == {Outcome.FIRED: 2, Outcome.MISSED: 14}
    assert counts.counted(NOW, [("a", FIRED)], [0]).outcomes[Outcome.FIRED] == 3


def test_what_was_not_fired_is_told_with_its_number() -> None:
    manual = ScheduleRun(NOW, Outcome.MANUAL, task_id(2))
    first = TickCounts().counted(NOW, [("a", FIRED), ("a", manual), ("b", MISSED)], [0])
    assert first.recent == (Skip(1, NOW, "b", MISSED),)
    second = first.counted(NOW + 1, [("c", MISSED)], [])
    assert second.recent == (Skip(1, NOW, "b", MISSED), Skip(2, NOW + 1, "c", MISSED))
    assert second.skips == 2


def test_only_the_last_ones_are_told() -> None:
    handled = [(f"s{number}", MISSED) for number in range(RECENT + 5)]
    counts = TickCounts().counted(NOW, handled, [])
    assert [skip.number for skip in counts.recent] == list(range(6, RECENT + 6))
    assert counts.skips == RECENT + 5


def test_lags_are_sorted_into_buckets() -> None:
    """A bound belongs to its bucket, and nothing is earlier than on time."""
    late = [-SECOND, 0, 50_000, 50_001, 3_600 * SECOND, 3_600 * SECOND + 1]
    counts = TickCounts().counted(NOW, [("a", FIRED)] * 6, late)
    assert (counts.lags[0], counts.lags[1], counts.lags[-2:]) == (3, 1, (1, 1))
    assert counts.lag_sum == pytest.approx(7200.100002)


runs = st.builds(
    ScheduleRun, st.just(NOW), st.sampled_from(Outcome), st.none(), st.integers(1, 2_000), st.text()
)
handled = st.lists(st.tuples(st.sampled_from(["a", "b"]), runs), max_size=4)


@quick
@given(handled, handled, st.lists(st.integers(0, 10**11), max_size=4))
def test_counts_survive_being_stored(
    one: list[tuple[str, ScheduleRun]], other: list[tuple[str, ScheduleRun]], late: list[int]
) -> None:
    counts = TickCounts().counted(NOW, one, late)
    assert decode(encode(counts)) == counts
    at_once = TickCounts().counted(NOW, [*one, *other], late)
    assert decode(encode(counts)).counted(NOW, other, []) == at_once
