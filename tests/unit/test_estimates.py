"""Where a task stands in the queue, and how long it may wait."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.estimates import Outlook, Pace, Position, outlook_of, pace_of, position_of
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


def point(at: float, completed: int, waiting: int = 1, executing: int = 1) -> Sample:
    """A sample so many seconds before NOW. A task starts when one completes."""
    depths = (0, waiting, 0, 0)
    return Sample(
        NOW + int(at * SECOND),
        started=completed + executing,
        completed=completed,
        depths=depths,
        executing=executing,
    )


class TestPace:
    def test_without_two_samples_nobody_knows(self) -> None:
        assert pace_of([]) == pace_of([point(0, 5)]) == Pace(None, completing=False)

    def test_it_is_that_of_the_seconds_with_work(self) -> None:
        points = [point(-3600, 0, waiting=0), point(-5, 100), point(0, 300)]
        assert pace_of(points) == Pace(40.0, completing=True)

    @pytest.mark.parametrize(
        "points",
        [
            pytest.param([point(-5, 0, waiting=0), point(0, 200)], id="it began in between"),
            pytest.param([point(-5, 0), point(0, 200, waiting=0)], id="it ran dry in between"),
            pytest.param([point(0, 0), point(0, 200)], id="no time passed"),
            pytest.param([point(0, 0), point(-5, 200)], id="the clock was set back"),
            pytest.param([point(-0.5, 0), point(0, 200)], id="too short to tell"),
        ],
    )
    def test_what_was_done_in_an_unknown_time_says_nothing(self, points: list[Sample]) -> None:
        assert pace_of(points) == Pace(None, completing=True)

    def test_while_nothing_completes_nobody_knows(self) -> None:
        assert pace_of([point(-5, 200), point(0, 200)]) == Pace(None, completing=False)

    def test_time_in_which_nobody_worked_does_not_count(self) -> None:
        paused = [point(-60, 90, executing=0), point(-10, 90, executing=0)]
        assert pace_of([*paused, point(0, 130, executing=0)]) == Pace(4.0, completing=True)

    @pytest.mark.parametrize(("before", "now"), [(1, 0), (0, 1)])
    def test_time_in_which_long_tasks_run_counts(self, before: int, now: int) -> None:
        waits = Sample(NOW - 20 * SECOND, completed=80, depths=(1,), executing=1)
        runs = Sample(NOW - 10 * SECOND, completed=90, depths=(1,), executing=before)
        still = Sample(NOW, completed=90, depths=(1,), executing=now)
        assert pace_of([waits, runs, still]) == Pace(0.5, completing=True)

    def test_the_latest_ten_seconds_are_enough(self) -> None:
        points = [point(-20, 0), point(-10, 1_000), point(-5, 1_050), point(0, 1_100)]
        assert pace_of(points) == Pace(10.0, completing=True)

    def test_a_few_completions_are_not_enough_if_more_are_known(self) -> None:
        points = [point(-40, 0), point(-20, 5), point(-10, 9), point(0, 10)]
        assert pace_of(points) == Pace(0.25, completing=True)

    def test_the_wait_follows(self) -> None:
        pace = Pace(4.0, completing=True)
        assert pace.place(0) == Position(1, 0.0)
        assert pace.place(0.9) == Position(1, 0.0)
        assert pace.place(30) == Position(31, 7.5)
        assert Pace(None, completing=True).place(30) == Position(31, None)
        assert Pace(None, completing=True).place(0) == Position(1, 0.0)
        assert Pace(None, completing=False).place(0) == Position(1, None)

    def test_a_position_has_the_wait_that_follows(self) -> None:
        now = queue(Stream(1, 8, 30, NOW, NOW))
        assert position_of(stored(), now, Pace(2.0, completing=True)) == Position(31, 15.0)


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
        depths = {"default": {5: 7, 8: 1}, "bulk": {5: 9}}
        assert outlook == Outlook(depths, 19, 19, {}, Sample(NOW))

    def test_runs_that_started_are_counted_by_queue(self) -> None:
        started = [
            tally(State.QUEUED, State.EXECUTING, count, lane=lane)
            for lane, count in [(1, 3), (2, 4), (3, 9), (7, 1)]
        ]
        outlook = outlook_of(facts(lanes=LANES, tallies=[*started, tally(None, State.QUEUED, 5)]))
        assert outlook.started == {"default": 7, "bulk": 9}
        assert (outlook.sample.at, outlook.sample.started) == (NOW, 17)
