"""Where a task stands in the queue, and how long it may wait."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.estimates import Outlook, Position, outlook_of, position_of
from fairlane.core.facts import Facts, Sample, Stream
from fairlane.core.lanes import Lane
from fairlane.core.model import moment
from fairlane.core.priority import Aging
from fairlane.core.states import State
from tests.unit.make import NOON, NOW, SECOND, facts, quick, stored, tally

LANES = {
    1: Lane(1, "default", "email", ()),
    2: Lane(2, "default", "crawl", ()),
    3: Lane(3, "bulk", "email", ()),
}


def queue(*streams: Stream) -> Facts:
    return facts(lanes=LANES, streams=list(streams))


class TestPosition:
    @pytest.mark.parametrize("state", [state for state in State if state is not State.QUEUED])
    def test_what_is_not_queued_has_none(self, state: State) -> None:
        assert position_of(stored(state=state), queue()) is None

    def test_who_is_alone_is_next(self) -> None:
        assert position_of(stored(), queue(Stream(1, 5, 1, NOW, NOW))) == Position(1, None)

    @pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
    def test_tasks_of_one_level_come_in_the_order_of_their_readiness(self, place: int) -> None:
        stream = Stream(1, 5, 5, NOW - 40 * SECOND, NOW)
        task = stored(ready_at=NOON - timedelta(seconds=50 - 10 * place))
        assert position_of(task, queue(stream)) == Position(place, None)

    @pytest.mark.parametrize(
        ("stream", "ahead"),
        [
            (Stream(1, 6, 3, NOW, NOW), 3),
            (Stream(1, 10, 3, NOW, NOW), 3),
            (Stream(2, 6, 3, NOW, NOW), 3),
            (Stream(3, 6, 3, NOW, NOW), 0),
            (Stream(9, 6, 3, NOW, NOW), 0),
            (Stream(1, 5, 3, NOW - 9 * SECOND, NOW - SECOND), 3),
            (Stream(2, 5, 3, NOW - 9 * SECOND, NOW - SECOND), 3),
            (Stream(3, 5, 3, NOW - 9 * SECOND, NOW - SECOND), 0),
            (Stream(2, 5, 3, NOW, NOW), 0),
            (Stream(2, 5, 3, NOW + 1, NOW + 2), 0),
            (Stream(2, 5, 3, NOW - 2 * SECOND, NOW + 2 * SECOND), 1),
            (Stream(1, 4, 3, NOW - 9 * SECOND, NOW - SECOND), 0),
        ],
    )
    def test_higher_levels_and_older_tasks_of_its_queue_are_ahead(
        self, stream: Stream, ahead: int
    ) -> None:
        assert position_of(stored(), queue(stream)) == Position(1 + ahead, None)

    def test_it_counts_all_streams(self) -> None:
        streams = [Stream(1, 8, 10, 0, NOW), Stream(2, 5, 4, 0, NOW - 1), Stream(1, 5, 3, 0, NOW)]
        assert position_of(stored(), queue(*streams)) == Position(17, None)

    def test_parts_of_a_task_make_no_place(self) -> None:
        stream = Stream(2, 5, 3, NOW - 3 * SECOND, NOW + SECOND)
        assert position_of(stored(), queue(stream)) == Position(2, None)

    @pytest.mark.parametrize(
        ("stream", "ahead"),
        [
            (Stream(2, 8, 3, NOW, NOW), 3),
            (Stream(2, 6, 3, NOW, NOW), 3),
            (Stream(2, 5, 3, NOW - 900 * SECOND, NOW - 800 * SECOND), 3),
            (Stream(2, 5, 3, NOW - 600 * SECOND, NOW), 0),
            (Stream(2, 3, 3, NOW - 900 * SECOND, NOW - 800 * SECOND), 3),
            (Stream(2, 3, 3, NOW - 600 * SECOND, NOW), 0),
            (Stream(2, 2, 3, NOW - 900 * SECOND, NOW - 500 * SECOND), 1),
            (Stream(2, 1, 3, NOW - 900 * SECOND, NOW - 800 * SECOND), 0),
        ],
    )
    def test_a_task_that_age_has_raised_is_in_line_with_those_of_its_new_level(
        self, stream: Stream, ahead: int
    ) -> None:
        aged = stored(level=2, effective_level=5, ready_at=NOON - timedelta(seconds=700))
        assert position_of(aged, queue(stream)) == Position(1 + ahead, None)

    @quick
    @given(
        st.integers(0, 10),
        st.integers(0, 2_000),
        st.lists(
            st.tuples(st.integers(0, 10), st.integers(1, 9), st.integers(0, 2_000)), max_size=5
        ),
    )
    def test_it_is_how_many_of_its_level_and_above_are_claimed_before_it(
        self, level: int, age: int, others: list[tuple[int, int, int]]
    ) -> None:
        # Streams in which a task became ready every 100 s, the last one some time ago. One step of
        # aging: with two, a task may be overtaken by a younger one of a higher level.
        aging = Aging(600.0, None, None)
        others = [stream for stream in others if stream[0] >= level]
        tasks = [
            (other, last + 100 * place) for other, depth, last in others for place in range(depth)
        ]
        streams = [
            Stream(2, other, depth, NOW - (last + 100 * depth - 100) * SECOND, NOW - last * SECOND)
            for other, depth, last in others
        ]

        def rank(level: int, age: int) -> tuple[int, int]:
            return (aging.effective(level, age * SECOND), age)

        task = stored(
            level=level,
            effective_level=rank(level, age)[0],
            ready_at=moment(NOW - age * SECOND),
        )
        place = position_of(task, queue(*streams))
        assert place is not None
        ahead = sum(rank(*other) > rank(level, age) for other in tasks)
        # Of each stream a part of a task may be missing.
        assert ahead - len(streams) <= place.position - 1 <= ahead


class TestWait:
    BUSY = Stream(1, 8, 30, NOW, NOW)

    def test_it_goes_by_what_was_completed_in_the_last_minute(self) -> None:
        now = facts(
            lanes=LANES,
            streams=[self.BUSY],
            tallies=[tally(State.EXECUTING, State.COMPLETED, 1_120)],
            samples=[Sample(NOW - 60 * SECOND, completed=1_000)],
        )
        assert position_of(stored(), now) == Position(31, 15.0)

    def test_an_older_sample_counts_in_proportion(self) -> None:
        now = facts(
            lanes=LANES,
            streams=[self.BUSY],
            tallies=[tally(State.EXECUTING, State.COMPLETED, 1_120)],
            samples=[Sample(NOW - 600 * SECOND, completed=1_000)],
        )
        place = position_of(stored(), now)
        assert place is not None
        assert place.position == 31
        assert place.wait_seconds == pytest.approx(150.0)

    def test_one_that_was_completed_is_enough_to_go_by(self) -> None:
        now = facts(
            lanes=LANES,
            streams=[self.BUSY],
            tallies=[tally(State.EXECUTING, State.COMPLETED, 1)],
        )
        assert position_of(stored(), now) == Position(31, 1_800.0)

    def test_who_is_next_does_not_wait(self) -> None:
        now = facts(tallies=[tally(State.EXECUTING, State.COMPLETED, 60)])
        assert position_of(stored(), now) == Position(1, 0.0)

    def test_nobody_knows_while_nothing_completes(self) -> None:
        now = facts(
            lanes=LANES,
            streams=[self.BUSY],
            tallies=[tally(State.EXECUTING, State.COMPLETED, 1_000)],
            samples=[Sample(NOW - 60 * SECOND, completed=1_000)],
        )
        assert position_of(stored(), now) == Position(31, None)


class TestOutlook:
    def test_queued_tasks_are_counted_by_queue_and_level(self) -> None:
        streams = [
            Stream(1, 5, 3, NOW, NOW),
            Stream(2, 5, 4, NOW, NOW),
            Stream(2, 8, 1, NOW, NOW),
            Stream(3, 5, 9, NOW, NOW),
            Stream(7, 5, 2, NOW, NOW),
        ]
        outlook = outlook_of(queue(*streams))
        assert outlook == Outlook({"default": {5: 7, 8: 1}, "bulk": {5: 9}}, 19, 0.0)

    def test_a_newcomer_stands_behind_its_level_and_those_above_it(self) -> None:
        outlook = Outlook({"default": {2: 5, 5: 7, 8: 1}, "bulk": {5: 9}}, 22, 4.0)
        assert outlook.newcomer("default", 5) == Position(9, 2.0)
        assert outlook.newcomer("default", 10) == Position(1, 0.0)
        assert outlook.newcomer("default", 0) == Position(14, 3.25)
        assert outlook.newcomer("new", 5) == Position(1, 0.0)

    def test_nobody_knows_how_long_while_nothing_completes(self) -> None:
        assert Outlook({"default": {5: 7}}, 7, 0.0).newcomer("default", 5) == Position(8, None)
