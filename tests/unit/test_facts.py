"""Samples: the counters of a store, summed up from counted transitions."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.facts import Sample, sample_of
from fairlane.core.machine import (
    EXPIRED,
    NOT_RETRIABLE,
    RETRIES_EXHAUSTED,
    TIMED_OUT,
    WORKER_LOST,
    decide,
    replay,
)
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed, Lost, Released, Snoozed, TimedOut
from fairlane.core.priority import Band, band_of
from fairlane.core.states import State
from fairlane.core.tally import LOST_WORKERS, STALE_RESULTS, Tally, apart, keys_of
from tests.unit.make import NOW, claimed, quick, tally

SCHEDULED, QUEUED, EXECUTING = State.SCHEDULED, State.QUEUED, State.EXECUTING
RETRYING, COMPLETED, FAILED = State.RETRYING, State.COMPLETED, State.FAILED
DEAD_LETTER, CANCELLED = State.DEAD_LETTER, State.CANCELLED


class TestCounters:
    def test_nothing_counted_is_nothing_in_the_sample(self) -> None:
        assert sample_of([], NOW) == Sample(at=NOW)
        assert Sample(at=NOW).depths == (0, 0, 0, 0)

    @pytest.mark.parametrize(
        ("counted", "sample"),
        [
            (tally(None, QUEUED, 7), Sample(NOW, submitted=7, depths=(0, 7, 0, 0))),
            (tally(None, SCHEDULED, 7), Sample(NOW, submitted=7)),
            (tally(SCHEDULED, QUEUED, 7), Sample(NOW, depths=(0, 7, 0, 0))),
            (tally(None, QUEUED, 7, "moved"), Sample(NOW, depths=(0, 7, 0, 0))),
            (tally(FAILED, None, 7, "moved"), Sample(NOW)),
            (tally(FAILED, QUEUED, 7), Sample(NOW, depths=(0, 7, 0, 0))),
            (
                tally(QUEUED, EXECUTING, 7),
                Sample(NOW, started=7, depths=(0, -7, 0, 0), executing=7),
            ),
            (
                tally(QUEUED, EXECUTING, 7, "8"),
                Sample(NOW, started=7, depths=(0, -7, 0, 0), executing=7),
            ),
            (
                tally(EXECUTING, COMPLETED, 7, seconds=1.5),
                Sample(NOW, completed=7, seconds=1.5, executing=-7),
            ),
            (
                tally(EXECUTING, RETRYING, 7, "error", seconds=1.5),
                Sample(NOW, failed=7, executing=-7),
            ),
            (
                tally(EXECUTING, RETRYING, 7, "timeout"),
                Sample(NOW, failed=7, timeouts=7, executing=-7),
            ),
            (
                tally(EXECUTING, DEAD_LETTER, 7, "timeout"),
                Sample(NOW, failed=7, timeouts=7, executing=-7),
            ),
            (
                tally(EXECUTING, DEAD_LETTER, 7, RETRIES_EXHAUSTED),
                Sample(NOW, failed=7, executing=-7),
            ),
            (tally(EXECUTING, DEAD_LETTER, 7, WORKER_LOST), Sample(NOW, failed=7, executing=-7)),
            (tally(EXECUTING, FAILED, 7, NOT_RETRIABLE), Sample(NOW, failed=7, executing=-7)),
            (
                tally(EXECUTING, QUEUED, 7, WORKER_LOST),
                Sample(NOW, failed=7, depths=(0, 7, 0, 0), executing=-7),
            ),
            (tally(EXECUTING, QUEUED, 7), Sample(NOW, depths=(0, 7, 0, 0), executing=-7)),
            (tally(EXECUTING, SCHEDULED, 7), Sample(NOW, executing=-7)),
            (tally(EXECUTING, CANCELLED, 7), Sample(NOW, executing=-7)),
            (tally(QUEUED, CANCELLED, 7, "replaced"), Sample(NOW, depths=(0, -7, 0, 0))),
            (tally(SCHEDULED, CANCELLED, 7, "dependency_failed"), Sample(NOW)),
            (tally(QUEUED, FAILED, 7, EXPIRED), Sample(NOW, depths=(0, -7, 0, 0))),
            (tally(RETRYING, FAILED, 7, "timeout"), Sample(NOW)),
            (tally(RETRYING, FAILED, 7, "error"), Sample(NOW)),
            (tally(COMPLETED, None, 7), Sample(NOW)),
            (tally(None, None, 7), Sample(NOW)),
            (tally(CANCELLED, COMPLETED, 7, seconds=2.0), Sample(NOW)),
            (Tally(apart(STALE_RESULTS), 7, 0.0), Sample(NOW, stale_results=7)),
            (Tally(apart(LOST_WORKERS), 7, 0.0), Sample(NOW, lost_workers=7)),
        ],
    )
    def test_what_each_transition_adds(self, counted: Tally, sample: Sample) -> None:
        assert sample_of([counted], NOW) == sample

    def test_everything_is_summed_up(self) -> None:
        counted = [
            tally(None, QUEUED, 10),
            tally(None, QUEUED, 1, level=8),
            tally(None, SCHEDULED, 2),
            tally(QUEUED, EXECUTING, 6),
            tally(QUEUED, EXECUTING, 1, level=8),
            tally(EXECUTING, COMPLETED, 3, seconds=1.5),
            tally(EXECUTING, COMPLETED, 1, level=8, seconds=0.25),
            tally(EXECUTING, RETRYING, 1, "timeout"),
            tally(EXECUTING, FAILED, 1, NOT_RETRIABLE, seconds=9.0),
            Tally(apart(STALE_RESULTS), 4, 0.0),
            Tally(apart(STALE_RESULTS), 1, 0.0),
            Tally(apart(LOST_WORKERS), 2, 0.0),
        ]
        assert sample_of(counted, NOW) == Sample(
            at=NOW,
            submitted=13,
            started=7,
            completed=4,
            failed=2,
            timeouts=1,
            lost_workers=2,
            stale_results=5,
            seconds=1.75,
            depths=(0, 4, 0, 0),
            executing=1,
        )

    @pytest.mark.parametrize(
        ("outcome", "failed", "timeouts"),
        [
            (Failed(TaskError("boom")), 1, 0),
            (Failed(TaskError("boom", retriable=False)), 1, 0),
            (TimedOut(), 1, 1),
            (Lost(started=True), 1, 0),
            (Released(), 0, 0),
            (Snoozed(5.0), 0, 0),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("retry_count", [0, 99], ids=["retries left", "retries exhausted"])
    def test_the_end_of_a_run_counts_by_the_reason_that_the_machine_gives(
        self, outcome: Failed, failed: int, timeouts: int, retry_count: int
    ) -> None:
        move = decide(claimed(retry_count=retry_count), outcome, 0.5)
        counted = tally(EXECUTING, move.state, 1, move.label)
        sample = sample_of([counted], NOW)
        assert (sample.failed, sample.timeouts, sample.completed) == (failed, timeouts, 0)


class TestDepths:
    @pytest.mark.parametrize(
        ("level", "place"),
        [(0, 0), (2, 0), (4, 0), (5, 1), (7, 1), (8, 2), (9, 2), (10, 3)],
    )
    def test_they_are_by_band_from_low_to_critical(self, level: int, place: int) -> None:
        depths = sample_of([tally(None, QUEUED, 3, level=level)], NOW).depths
        assert depths == tuple(3 if each == place else 0 for each in range(4))

    def test_a_replay_at_another_level_moves_a_task_to_its_band(self) -> None:
        moved = [
            Tally(key, 1, 0.0)
            for key in keys_of(replay(reset_retry_count=True, level=8), 1, 2, FAILED.code)
        ]
        assert sample_of(moved, NOW) == Sample(NOW, depths=(0, 0, 1, 0))

    @quick
    @given(
        st.lists(
            st.tuples(st.integers(0, 10), st.lists(st.none() | st.sampled_from(State), max_size=6)),
            max_size=20,
        )
    )
    def test_they_count_the_tasks_whose_last_state_is_queued(
        self, lives: list[tuple[int, list[State | None]]]
    ) -> None:
        counted = [
            tally(source, target, level=level)
            for level, life in lives
            for source, target in pairwise([None, *life])
        ]
        queued = [band_of(level) for level, life in lives if life and life[-1] is QUEUED]
        expected = tuple(queued.count(band) for band in Band)
        assert sample_of(counted, NOW).depths == expected


class TestStoring:
    def test_a_sample_comes_back_as_it_was(self) -> None:
        sample = Sample(NOW, 1, 2, 3, 4, 5, 6, 7, 8.5, (9, 10, 11, 12))
        assert msgspec.json.decode(msgspec.json.encode(sample), type=Sample) == sample

    def test_fields_are_stored_by_their_place(self) -> None:
        sample = Sample(0, 1, 2, 3, 4, 5, 6, 7, 8.5, (9, 10, 11, 12), 13, 14)
        assert msgspec.json.encode(sample) == b"[0,1,2,3,4,5,6,7,8.5,[9,10,11,12],13,14]"
        assert sample == Sample(
            at=0,
            submitted=1,
            started=2,
            completed=3,
            failed=4,
            timeouts=5,
            lost_workers=6,
            stale_results=7,
            seconds=8.5,
            depths=(9, 10, 11, 12),
            executing=13,
            began=14,
        )

    def test_one_of_an_earlier_version_may_be_shorter(self) -> None:
        assert msgspec.json.decode(b"[5,1]", type=Sample) == Sample(5, 1)


def test_the_reasons_of_the_machine_are_the_labels_of_the_counters() -> None:
    assert (TIMED_OUT, WORKER_LOST, NOT_RETRIABLE) == ("timeout", "worker_lost", "not_retriable")
