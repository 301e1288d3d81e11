from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.priority import Aging
from fairlane.core.streams import Head, first_heads, spans_of
from tests.unit.make import NOW, SECOND, quick


def lanes_in(spans: tuple[tuple[int, int], ...], every: set[int]) -> set[int]:
    return {lane for lane in every for first, last in spans if first <= lane <= last}


class TestSpans:
    def test_no_lanes_have_no_spans(self) -> None:
        assert spans_of([], [1, 2, 3]) == ()

    def test_all_lanes_are_one_span_whatever_numbers_are_missing(self) -> None:
        assert spans_of([9, 1, 4], [1, 4, 9]) == ((1, 9),)

    def test_a_lane_of_others_divides_a_span(self) -> None:
        assert spans_of([1, 2, 4, 5, 9], [1, 2, 3, 4, 5, 7, 9]) == ((1, 2), (4, 5), (9, 9))

    @quick
    @given(st.sets(st.integers(1, 40)), st.sets(st.integers(1, 40)))
    def test_spans_hold_these_lanes_and_no_other(self, every: set[int], some: set[int]) -> None:
        chosen = some & every
        spans = spans_of(chosen, every)
        assert lanes_in(spans, every) == chosen
        assert list(spans) == sorted(spans)
        assert len(spans) <= len(every - chosen) + 1


class TestFirstHeads:
    AGING = Aging()

    def heads(self, *ages: int) -> list[Head]:
        return [
            Head(lane, 5, NOW - age * SECOND, f"task-{lane}") for lane, age in enumerate(ages, 1)
        ]

    def lanes(self, heads: list[Head], most: int) -> list[int]:
        chosen = first_heads(heads, self.AGING, NOW, most, lambda head: head.lane % 2)
        return sorted(head.lane for head in chosen)

    def test_few_streams_are_all_chosen(self) -> None:
        assert self.lanes(self.heads(1, 2, 3), 3) == [1, 2, 3]

    def test_the_oldest_of_each_group_are_chosen(self) -> None:
        assert self.lanes(self.heads(1, 9, 2, 8, 3, 7), 2) == [2, 3, 4, 5]

    def test_a_higher_level_comes_first_until_others_have_aged(self) -> None:
        urgent = Head(8, 8, NOW, "task-8")
        assert self.lanes([*self.heads(1, 9), urgent], 1) == [1, 8]
        assert self.lanes([*self.heads(1, 2_000), urgent], 1) == [1, 2]
