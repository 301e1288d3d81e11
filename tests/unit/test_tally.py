"""Counting: every counter is a sum over counted transitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.machine import COMPLETE, EXPIRE, Move, replay
from fairlane.core.states import State
from fairlane.core.tally import (
    BUCKETS,
    LOST_WORKERS,
    STALE_RESULTS,
    UNTIMED,
    Tally,
    TallyKey,
    apart,
    bucket_of,
    census,
    keys_of,
    total_of,
    waits_of,
)
from tests.unit.make import quick, tally

NOWHERE = 0


class TestBuckets:
    @pytest.mark.parametrize(
        ("seconds", "bucket"),
        [
            (None, -1),
            (0.0, 0),
            (0.005, 0),
            (0.0050001, 1),
            (1.0, 7),
            (1.1, 8),
            (1800.0, 14),
            (1800.1, 15),
            (1e9, 15),
        ],
    )
    def test_a_duration_falls_into_the_first_bucket_whose_bound_it_does_not_exceed(
        self, seconds: float | None, bucket: int
    ) -> None:
        assert bucket_of(seconds) == bucket

    def test_the_bounds_are_stored_by_their_place_and_so_never_change(self) -> None:
        assert (
            *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
            *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
        ) == BUCKETS

    @quick
    @given(st.floats(0, 1e7))
    def test_every_duration_has_a_bucket(self, seconds: float) -> None:
        bounds = [0.0, *BUCKETS, float("inf")]
        bucket = bucket_of(seconds)
        assert bounds[bucket] <= seconds <= bounds[bucket + 1]

    def test_a_key_is_untimed_and_without_a_label_unless_told(self) -> None:
        assert TallyKey(1, 5, 0, 2) == (1, 5, 0, 2, "", UNTIMED)


def again(level: int | None) -> Move:
    return replay(reset_retry_count=True, level=level)


class TestMoves:
    def test_a_move_is_counted_under_its_label_and_the_time_of_its_run(self) -> None:
        executing, failed = State.EXECUTING.code, State.FAILED.code
        assert keys_of(EXPIRE, 3, 5, State.QUEUED.code) == [
            TallyKey(3, 5, State.QUEUED.code, failed, "expired")
        ]
        assert keys_of(COMPLETE, 3, 5, executing, 0.02) == [
            TallyKey(3, 5, executing, State.COMPLETED.code, "", bucket_of(0.02))
        ]

    def test_at_the_same_level_it_is_one_transition(self) -> None:
        assert keys_of(again(None), 3, 5, State.FAILED.code) == [
            TallyKey(3, 5, State.FAILED.code, State.QUEUED.code)
        ]

    def test_at_another_level_the_task_leaves_one_and_enters_the_other(self) -> None:
        assert keys_of(again(8), 3, 2, State.DEAD_LETTER.code) == [
            TallyKey(3, 2, State.DEAD_LETTER.code, NOWHERE, "moved"),
            TallyKey(3, 8, NOWHERE, State.QUEUED.code, "moved"),
        ]

    @quick
    @given(
        st.sampled_from([State.FAILED, State.DEAD_LETTER, State.CANCELLED]),
        st.integers(0, 10),
        st.integers(0, 10),
    )
    def test_either_way_one_task_goes_from_its_state_to_queued(
        self, source: State, old: int, new: int
    ) -> None:
        there = Tally(TallyKey(1, old, NOWHERE, source.code), 1, 0.0)
        replayed = [Tally(key, 1, 0.0) for key in keys_of(again(new), 1, old, source.code)]
        assert census([there, *replayed]) == dict.fromkeys(State, 0) | {State.QUEUED: 1}


class TestCensus:
    def test_without_transitions_there_are_no_tasks(self) -> None:
        assert census([]) == dict.fromkeys(State, 0)

    def test_tasks_are_where_they_went(self) -> None:
        counted = [
            Tally(TallyKey(1, 5, NOWHERE, State.QUEUED.code), 10, 0.0),
            Tally(TallyKey(2, 8, NOWHERE, State.SCHEDULED.code), 3, 0.0),
            Tally(TallyKey(1, 5, State.QUEUED.code, State.EXECUTING.code, "8"), 6, 1.0),
            Tally(TallyKey(1, 5, State.EXECUTING.code, State.COMPLETED.code, "", 3), 4, 0.2),
            Tally(TallyKey(1, 5, State.COMPLETED.code, NOWHERE), 1, 0.0),
        ]
        assert census(counted) == dict.fromkeys(State, 0) | {
            State.QUEUED: 4,
            State.SCHEDULED: 3,
            State.EXECUTING: 2,
            State.COMPLETED: 3,
        }

    @quick
    @given(st.lists(st.lists(st.sampled_from(State), min_size=1, max_size=6), max_size=20))
    def test_it_counts_the_last_state_of_every_task(self, lives: list[list[State]]) -> None:
        counted = [
            Tally(TallyKey(1, 5, source, target), 1, 0.0)
            for life in lives
            for source, target in zip(
                [NOWHERE, *(state.code for state in life)],
                [state.code for state in life],
                strict=False,
            )
        ]
        ends = [life[-1] for life in lives]
        assert census(counted) == {state: ends.count(state) for state in State}


class TestTotals:
    COUNTED = (
        tally(None, State.QUEUED, 10, lane=1, level=5),
        tally(None, State.QUEUED, 4, lane=2, level=8),
        tally(State.QUEUED, State.EXECUTING, 3, lane=1, level=5),
        tally(State.EXECUTING, State.COMPLETED, 2, lane=1, level=5),
        tally(State.COMPLETED, None, 1, lane=1, level=5),
        Tally(apart(STALE_RESULTS), 99, 0.0),
    )

    @pytest.mark.parametrize(
        ("states", "lanes", "levels", "total"),
        [
            (None, {1, 2}, None, 13),
            (None, {1}, None, 9),
            (None, {2}, None, 4),
            (None, set(), None, 0),
            (None, {0, 1, 2}, None, 13),
            (None, {1, 2}, {5}, 9),
            (None, {1, 2}, {8}, 4),
            (None, {1, 2}, {5, 8}, 13),
            (None, {1, 2}, set(), 0),
            ({State.QUEUED}, {1, 2}, None, 11),
            ({State.QUEUED, State.EXECUTING}, {1, 2}, None, 12),
            ({State.QUEUED, State.EXECUTING}, {1}, {5}, 8),
            ({State.COMPLETED}, {1, 2}, None, 1),
            ({State.FAILED}, {1, 2}, None, 0),
            (set(), {1, 2}, None, 0),
        ],
    )
    def test_tasks_in_the_states_lanes_and_levels_that_are_asked_for(
        self, states: set[State] | None, lanes: set[int], levels: set[int] | None, total: int
    ) -> None:
        assert total_of(self.COUNTED, states, lanes, levels) == total

    @quick
    @given(
        lives=st.lists(
            st.tuples(
                st.integers(1, 3),  # lane
                st.sampled_from([2, 5, 8]),  # level
                st.lists(st.none() | st.sampled_from(State), min_size=1, max_size=6),
            ),
            max_size=20,
        ),
        states=st.none() | st.frozensets(st.sampled_from(State)),
        lanes=st.frozensets(st.integers(1, 3)),
        levels=st.none() | st.frozensets(st.sampled_from([2, 5, 8])),
    )
    def test_they_are_those_that_a_census_of_the_same_lanes_and_levels_finds(
        self,
        lives: list[tuple[int, int, list[State | None]]],
        states: frozenset[State] | None,
        lanes: frozenset[int],
        levels: frozenset[int] | None,
    ) -> None:
        counted = [
            tally(source, target, lane=lane, level=level)
            for lane, level, life in lives
            for source, target in zip([None, *life], life, strict=False)
        ]
        admitted = [
            each
            for each in counted
            if each.key.lane in lanes and (levels is None or each.key.level in levels)
        ]
        found = census(admitted)
        expected = sum(found[state] for state in (State if states is None else states))
        assert total_of(counted, states, lanes, levels) == expected


class TestWhatIsCountedApart:
    @pytest.mark.parametrize("label", [STALE_RESULTS, LOST_WORKERS])
    def test_it_is_no_task_in_any_lane_level_or_state(self, label: str) -> None:
        assert apart(label) == TallyKey(0, 0, NOWHERE, NOWHERE, label)
        assert census([Tally(apart(label), 5, 0.0)]) == dict.fromkeys(State, 0)

    def test_the_labels_are_stored_and_so_never_change(self) -> None:
        assert (STALE_RESULTS, LOST_WORKERS) == ("stale_results", "lost_workers")


class TestWaits:
    NOW = 10_000_000_000

    def waits(self, *seconds: float) -> list[tuple[int, int, float]]:
        return waits_of([self.NOW - int(each * 1_000_000) for each in seconds], self.NOW)

    def test_tasks_that_waited_alike_are_one_count(self) -> None:
        assert self.waits(0.02, 0.02, 0.011) == [(2, 3, 0.051)]

    def test_others_are_counted_apart(self) -> None:
        assert self.waits(5_000, 20, 20, 0.001) == [
            (len(BUCKETS), 1, 5_000),
            (bucket_of(20), 2, 40),
            (0, 1, 0.001),
        ]

    @pytest.mark.parametrize("seconds", [0.0, *BUCKETS, 0.00501, 2_000.0])
    def test_the_buckets_are_those_of_durations(self, seconds: float) -> None:
        assert self.waits(seconds) == [(bucket_of(seconds), 1, seconds)]

    def test_a_clock_that_stepped_back_makes_no_wait_negative(self) -> None:
        assert self.waits(-30) == [(0, 1, 0.0)]
