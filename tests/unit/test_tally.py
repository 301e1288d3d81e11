"""Counting: every counter is a sum over counted transitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.states import State
from fairlane.core.tally import BUCKETS, UNTIMED, Tally, TallyKey, bucket_of, census, replay_keys
from tests.unit.make import quick

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


class TestReplays:
    def test_at_the_same_level_it_is_one_transition(self) -> None:
        assert replay_keys(3, 5, 5, State.FAILED.code) == [
            TallyKey(3, 5, State.FAILED.code, State.QUEUED.code)
        ]

    def test_at_another_level_the_task_leaves_one_and_enters_the_other(self) -> None:
        assert replay_keys(3, 2, 8, State.DEAD_LETTER.code) == [
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
        replayed = [Tally(key, 1, 0.0) for key in replay_keys(1, old, new, source.code)]
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
