"""Priorities by name and number, and how waiting raises them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.errors import InvalidPriority
from fairlane.core.priority import (
    ALWAYS_YOUNG,
    DEFAULT,
    Aging,
    Band,
    band_of,
    level_of,
    priority_of,
    shown_as,
)
from tests.unit.make import quick

SECOND = 1_000_000
LEVELS = range(11)

BANDS = ["low"] * 5 + ["medium"] * 3 + ["high"] * 2 + ["critical"]
"""By level, from 0 to 10."""


class TestNames:
    @pytest.mark.parametrize(
        ("priority", "level"),
        [("critical", 10), ("high", 8), ("medium", 5), ("normal", 5), ("low", 2)],
    )
    def test_a_name_stands_for_a_level(self, priority: str, level: int) -> None:
        assert level_of(priority) == level

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_level_stands_for_itself(self, level: int) -> None:
        assert level_of(level) == level

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("high", "high"),
            ("8", 8),
            ("-1", -1),
            ("\u0661", "\u0661"),
            ("9" * 10, "9" * 10),
            ("", ""),
        ],
    )
    def test_text_means_a_name_or_a_number(self, text: str, meant: str | int) -> None:
        assert priority_of(text) == meant

    def test_the_default_is_medium(self) -> None:
        assert level_of("medium") == DEFAULT

    @pytest.mark.parametrize(
        ("level", "shown"),
        list(enumerate([0, 1, "low", 3, 4, "medium", 6, 7, "high", 9, "critical"])),
    )
    def test_a_level_is_shown_by_its_name_where_it_has_one(
        self, level: int, shown: str | int
    ) -> None:
        assert shown_as(level) == shown

    @pytest.mark.parametrize(
        "priority",
        [-1, 11, 10**9, 5.0, 5.5, True, False, None, "", "urgent", "HIGH", "5", b"low", [5], ()],
        ids=repr,
    )
    def test_anything_else_is_refused_with_what_would_do(self, priority: Any) -> None:
        with pytest.raises(InvalidPriority, match=r"from 0 to 10\. Got ") as caught:
            level_of(priority)
        assert caught.value.message.endswith(f"Got {priority!r}.")

    def test_a_long_value_is_shown_in_part(self) -> None:
        with pytest.raises(InvalidPriority) as caught:
            level_of("u" * 10_000)
        assert len(caught.value.message) < 200

    @pytest.mark.parametrize(("level", "band"), list(enumerate(BANDS)))
    def test_a_level_belongs_to_a_band(self, level: int, band: str) -> None:
        assert band_of(level) == Band(band)


def slowly(aging: Aging, level: int, age: int) -> int:
    """SPEC section 3, one promotion at a time."""
    ladder = [
        ("low", aging.low_to_medium, 5),
        ("medium", aging.medium_to_high, 8),
        ("high", aging.high_to_critical, 10),
    ]
    counts_as = level
    for band, seconds, next_level in ladder:
        if BANDS[counts_as] == band:
            if seconds is None or age < round(seconds * SECOND):
                return counts_as
            age -= round(seconds * SECOND)
            counts_as = next_level
    return counts_as


thresholds = st.none() | st.integers(0, 5000) | st.floats(0.001, 5000)
settings_of_aging = st.builds(Aging, thresholds, thresholds, thresholds)


ages = st.tuples(st.integers(0, 6), st.sampled_from([-1, 0, 1]) | st.integers(0, 5000 * SECOND))
"""To be read by `age_of`: more often next to a threshold than chance would have it."""


def age_of(aging: Aging, drawn: tuple[int, int]) -> int:
    """The age at the drawn distance from one of the ages that matter to some band."""
    low, medium, high = (
        round((step or 0) * SECOND)
        for step in (aging.low_to_medium, aging.medium_to_high, aging.high_to_critical)
    )
    edges = (0, low, low + medium, low + medium + high, medium, medium + high, high)
    number, distance = drawn
    return max(0, edges[number] + distance)


class TestAging:
    @pytest.mark.parametrize(
        ("level", "seconds", "effective"),
        [
            (2, 0, 2),
            (2, 599.999999, 2),
            (2, 600, 5),
            (2, 1799.999999, 5),
            (2, 1800, 8),
            (2, 10**9, 8),
            (0, 599, 0),
            (4, 600, 5),
            (5, 1199.999999, 5),
            (5, 1200, 8),
            (6, 1199, 6),
            (7, 1200, 8),
            (5, 10**9, 8),
            (8, 10**9, 8),
            (9, 10**9, 9),
            (10, 0, 10),
            (10, 10**9, 10),
        ],
    )
    def test_the_defaults_are_those_of_the_specification(
        self, level: int, seconds: float, effective: int
    ) -> None:
        assert Aging().effective(level, round(seconds * SECOND)) == effective

    @pytest.mark.parametrize("level", range(10))
    def test_nothing_ages_into_critical_by_default(self, level: int) -> None:
        assert Aging().effective(level, 10**6 * 86_400 * SECOND) < 10

    @pytest.mark.parametrize(("level", "seconds"), [(0, 3600), (5, 3000), (8, 1800), (9, 1800)])
    def test_everything_ages_into_critical_once_the_third_threshold_is_set(
        self, level: int, seconds: int
    ) -> None:
        aging = Aging(high_to_critical=1800.0)
        assert aging.effective(level, seconds * SECOND - 1) < 10
        assert aging.effective(level, seconds * SECOND) == 10

    @pytest.mark.parametrize("level", LEVELS)
    def test_without_thresholds_nothing_ages(self, level: int) -> None:
        assert Aging(None, None, None).effective(level, 10**15) == level

    def test_a_band_that_does_not_age_does_not_skip_one_either(self) -> None:
        aging = Aging(low_to_medium=None, medium_to_high=10.0)
        assert aging.effective(2, 10**15) == 2
        assert aging.effective(5, 10 * SECOND) == 8

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_task_from_the_future_of_a_shifted_clock_counts_as_submitted(
        self, level: int
    ) -> None:
        assert Aging().effective(level, -5 * SECOND) == level

    @quick
    @given(settings_of_aging, st.sampled_from(LEVELS), ages)
    def test_the_effective_level_is_the_specified_one(
        self, aging: Aging, level: int, drawn: tuple[int, int]
    ) -> None:
        age = age_of(aging, drawn)
        assert aging.effective(level, age) == slowly(aging, level, age)

    @quick
    @given(settings_of_aging, st.sampled_from(LEVELS), ages, ages)
    def test_waiting_never_lowers_a_level(
        self, aging: Aging, level: int, one: tuple[int, int], other: tuple[int, int]
    ) -> None:
        younger, older = sorted((age_of(aging, one), age_of(aging, other)))
        assert level <= aging.effective(level, younger) <= aging.effective(level, older)

    @pytest.mark.parametrize(
        ("level", "seconds", "label"),
        [(2, 0, ""), (2, 600, "5"), (2, 1800, "8"), (7, 1200, "8"), (8, 10**9, ""), (10, 0, "")],
    )
    def test_a_raised_task_is_labelled_with_the_level_it_counts_as(
        self, level: int, seconds: int, label: str
    ) -> None:
        assert Aging().raised_to(level, seconds * SECOND) == label


class TestYouth:
    @pytest.mark.parametrize(
        ("aging", "seconds"),
        [
            (Aging(), 600),
            (Aging(None), 1200),
            (Aging(600, 30), 30),
            (Aging(600, 1200, 5), 5),
            (Aging(600, 1200, 900), 600),
            (Aging(0), 0),
        ],
    )
    def test_it_ends_with_the_shortest_threshold(self, aging: Aging, seconds: int) -> None:
        assert aging.youth == seconds * SECOND

    def test_it_never_ends_without_thresholds(self) -> None:
        assert Aging(None, None, None).youth == ALWAYS_YOUNG
        assert 10_000 * 366 * 86_400 * SECOND < ALWAYS_YOUNG < 2**63, "what engines compute with"

    @quick
    @given(settings_of_aging)
    def test_nobody_is_raised_before_its_end_and_somebody_at_it(self, aging: Aging) -> None:
        def raised(age: int) -> bool:
            return any(slowly(aging, level, age) != level for level in LEVELS)

        if aging.youth == ALWAYS_YOUNG:
            assert aging == Aging(None, None, None)
        else:
            assert raised(aging.youth)
            assert aging.youth == 0 or not raised(aging.youth - 1)


class TestWalk:
    @quick
    @given(settings_of_aging)
    def test_it_goes_down_and_names_each_effective_level_once(self, aging: Aging) -> None:
        order = [effective for effective, _ in aging.walk()]
        assert order == sorted(set(order), reverse=True)

    @quick
    @given(settings_of_aging, st.sampled_from(LEVELS), ages)
    def test_every_task_is_met_exactly_once_under_its_effective_level(
        self, aging: Aging, level: int, drawn: tuple[int, int]
    ) -> None:
        age = age_of(aging, drawn)
        met = [
            (effective, segment.effective)
            for effective, segments in aging.walk()
            for segment in segments
            if segment.level == level
            and segment.from_age <= age
            and (segment.to_age is None or age < segment.to_age)
        ]
        due = slowly(aging, level, age)
        assert met == [(due, due)]

    @quick
    @given(settings_of_aging, st.sampled_from(LEVELS))
    def test_the_segments_of_a_level_lie_end_to_end(self, aging: Aging, level: int) -> None:
        segments = aging.segments(level)
        assert segments[0].from_age == 0
        assert segments[-1].to_age is None
        assert [s.from_age for s in segments[1:]] == [s.to_age for s in segments[:-1]]
        assert {s.level for s in segments} == {level}

    def test_the_default_walk(self) -> None:
        """Level 10 first, whatever has aged; then 9; then 8 with all that came of age to it."""
        walk = [
            (effective, [(s.level, s.from_age // SECOND) for s in segments])
            for effective, segments in Aging().walk()
        ]
        grown_up = [(7, 1200), (6, 1200), (5, 1200)]
        aged_low = [(level, 1800) for level in (4, 3, 2, 1, 0)]
        half_aged = [(level, 600) for level in (4, 3, 2, 1, 0)]
        assert walk == [
            (10, [(10, 0)]),
            (9, [(9, 0)]),
            (8, [(8, 0), *grown_up, *aged_low]),
            (7, [(7, 0)]),
            (6, [(6, 0)]),
            (5, [(5, 0), *half_aged]),
            *[(level, [(level, 0)]) for level in (4, 3, 2, 1, 0)],
        ]


@pytest.mark.parametrize("threshold", [-1.0, float("nan"), float("inf"), 10.0**12])
def test_an_aging_threshold_that_makes_no_sense_is_refused(threshold: float) -> None:
    with pytest.raises(InvalidPriority, match="aging threshold"):
        Aging(low_to_medium=threshold)
