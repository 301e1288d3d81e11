"""What operators read: computed from the facts of a store, and from nothing else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from fairlane.core.facts import Sample, Stream, sample_of
from fairlane.core.lanes import Lane
from fairlane.core.model import WorkerStatus
from fairlane.core.priority import Band
from fairlane.core.states import State
from fairlane.core.stats import (
    HOUR,
    MINUTE,
    BandStats,
    Gain,
    Recovery,
    Throughput,
    WorkerStats,
    age_percentile,
    at_risk,
    older_than,
    since,
    stats_of,
)
from fairlane.core.tally import LOST_WORKERS, STALE_RESULTS, Tally, apart, census
from tests.unit.make import NOW, SECOND, facts, quick, tally, worker

MILLISECOND = 0.001


def evenly(depth: int, oldest: int, gap: int, level: int = 5, lane: int = 1) -> Stream:
    """So many tasks, one every `gap` microseconds."""
    return Stream(lane, level, depth, oldest, oldest + (depth - 1) * gap)


class TestOlderThan:
    @quick
    @given(st.integers(1, 50), st.integers(1, 10**9), st.data())
    def test_each_task_of_an_even_stream_has_the_earlier_ones_before_it(
        self, depth: int, gap: int, data: st.DataObject
    ) -> None:
        place = data.draw(st.integers(0, depth - 1))
        stream = evenly(depth, NOW, gap)
        assert older_than(stream, NOW + place * gap) == pytest.approx(place)

    @pytest.mark.parametrize(
        ("ready_at", "older"),
        [(0, 0), (100, 0), (101, 0.04), (125, 1), (150, 2), (200, 4), (201, 5), (10**9, 5)],
    )
    def test_between_the_ends_it_is_in_proportion(self, ready_at: int, older: float) -> None:
        assert older_than(Stream(1, 5, 5, 100, 200), ready_at) == older

    @pytest.mark.parametrize(("ready_at", "older"), [(99, 0), (100, 0), (101, 8)])
    def test_tasks_that_became_ready_at_once(self, ready_at: int, older: float) -> None:
        assert older_than(Stream(1, 5, 8, 100, 100), ready_at) == older


streams_at_noon = st.lists(
    st.builds(
        evenly,
        st.integers(1, 40),
        st.integers(NOW - 90_000 * SECOND, NOW - 10_000 * SECOND),
        st.integers(0, 200 * SECOND),
    ),
    min_size=1,
    max_size=4,
)
shares = st.floats(0.0, 1.0)


class TestAgePercentile:
    def test_without_tasks_there_is_no_age(self) -> None:
        assert age_percentile([], NOW, 0.5) == 0.0

    @pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 1.0])
    def test_one_task_has_one_age(self, share: float) -> None:
        assert age_percentile([evenly(1, NOW - 7 * SECOND, 0)], NOW, share) == 7.0

    @quick
    @given(st.integers(1, 200), st.integers(1, 60), st.floats(0.01, 1.0))
    def test_of_an_even_stream_it_is_exact_to_one_task(
        self, depth: int, gap: int, share: float
    ) -> None:
        ages = [7.0 + place * gap for place in range(depth)]
        exact = ages[math.ceil(share * depth) - 1]
        stream = evenly(depth, NOW - int(ages[-1] * SECOND), gap * SECOND)
        found = age_percentile([stream], NOW, share)
        assert exact - gap - MILLISECOND <= found <= exact + MILLISECOND

    @quick
    @given(st.integers(1, 100), st.integers(1, 60), st.data())
    def test_where_the_share_is_a_whole_number_of_tasks_it_is_the_age_of_that_task(
        self, depth: int, gap: int, data: st.DataObject
    ) -> None:
        count = data.draw(st.integers(1, depth))
        stream = evenly(depth, NOW - depth * gap * SECOND, gap * SECOND)
        found = age_percentile([stream], NOW, count / depth)
        assert found == pytest.approx(count * gap, abs=2 * MILLISECOND)

    @quick
    @given(streams_at_noon, shares, shares)
    def test_a_larger_share_is_not_younger(
        self, streams: list[Stream], one: float, other: float
    ) -> None:
        low, high = sorted([one, other])
        assert age_percentile(streams, NOW, low) <= age_percentile(streams, NOW, high)

    @quick
    @given(streams_at_noon, st.floats(0.01, 1.0))
    def test_so_many_tasks_do_not_exceed_it_and_fewer_are_any_younger(
        self, streams: list[Stream], share: float
    ) -> None:
        found = round(age_percentile(streams, NOW, share) * SECOND)
        wanted = share * sum(stream.depth for stream in streams)

        def up_to(age: int) -> float:
            return sum(stream.depth - older_than(stream, NOW - age) for stream in streams)

        assert up_to(found) >= wanted - 1e-6
        youngest = min(NOW - stream.newest for stream in streams)
        assert found <= youngest + 1000 or up_to(found - 1001) < wanted

    @quick
    @given(streams_at_noon)
    def test_all_tasks_are_at_most_as_old_as_the_oldest(self, streams: list[Stream]) -> None:
        oldest = max(NOW - stream.oldest for stream in streams) / SECOND
        assert age_percentile(streams, NOW, 1.0) == pytest.approx(oldest, abs=2 * MILLISECOND)

    def test_a_few_old_tasks_do_not_raise_the_median(self) -> None:
        streams = [evenly(99, NOW - 5 * SECOND, 0), evenly(1, NOW - 9_000 * SECOND, 0)]
        assert age_percentile(streams, NOW, 0.50) == pytest.approx(5.0, abs=MILLISECOND)
        assert age_percentile(streams, NOW, 0.99) == pytest.approx(5.0, abs=MILLISECOND)
        assert age_percentile(streams, NOW, 0.999) == pytest.approx(9_000.0, abs=MILLISECOND)

    def test_streams_may_come_one_by_one(self) -> None:
        assert age_percentile(iter([evenly(1, NOW - SECOND, 0)]), NOW, 0.5) == 1.0

    def test_a_clock_that_stepped_back_makes_nothing_younger_than_new(self) -> None:
        assert age_percentile([evenly(3, NOW + SECOND, SECOND)], NOW, 0.5) == 0.0

    def test_it_takes_few_steps_however_old_the_tasks_are(self) -> None:
        streams = [Stream(1, 5, 2, 0, NOW)]
        assert age_percentile(streams, NOW, 1.0) == pytest.approx(NOW / SECOND, abs=MILLISECOND)


def counters(at: int, growth: int) -> Sample:
    """A sample in which every counter has grown by its own multiple."""
    return Sample(
        at=at,
        submitted=2 * growth,
        started=100 * growth,
        completed=3 * growth,
        failed=5 * growth,
        timeouts=7 * growth,
        lost_workers=11 * growth,
        stale_results=13 * growth,
        seconds=17.0 * growth,
        depths=(growth, growth, growth, growth),
    )


def grown(growth: float) -> Gain:
    return Gain(
        submitted=2 * growth,
        completed=3 * growth,
        failed=5 * growth,
        timeouts=7 * growth,
        lost_workers=11 * growth,
        stale_results=13 * growth,
        seconds=17 * growth,
    )


class TestSince:
    CURRENT = counters(NOW, 100)

    def test_the_periods_are_a_minute_and_an_hour(self) -> None:
        assert (MINUTE, HOUR) == (60.0, 3600.0)

    @pytest.mark.parametrize(
        ("samples", "gain"),
        [
            ([], 100),
            ([counters(NOW - 60 * SECOND, 40)], 60),
            ([counters(NOW - 30 * SECOND, 40)], 60),
            ([counters(NOW - 120 * SECOND, 40)], 30),
            ([counters(NOW - 240 * SECOND, 40)], 15),
            ([counters(NOW, 40)], 60),
            ([counters(NOW + 5 * SECOND, 40)], 60),
            ([counters(NOW - 3600 * SECOND, 0), counters(NOW - 60 * SECOND, 40)], 60),
            ([counters(NOW - 60 * SECOND, 40), counters(NOW - 3600 * SECOND, 0)], 60),
            ([counters(NOW - 75 * SECOND, 40), counters(NOW - 50 * SECOND, 90)], 10),
            ([counters(NOW - 80 * SECOND, 20), counters(NOW - 30 * SECOND, 90)], 60),
        ],
    )
    def test_it_is_the_growth_from_the_sample_nearest_to_the_beginning(
        self, samples: list[Sample], gain: float
    ) -> None:
        found = since(facts(samples=samples), self.CURRENT, MINUTE)
        assert asdict(found) == pytest.approx(asdict(grown(gain)))

    @pytest.mark.parametrize(
        ("began", "first", "later", "gain"),
        [
            (2, 1, [], 100),  # seconds ago, as are the samples
            (20, 15, [5], 100),
            (59, 59, [40, 5], 100),
            (60, 10, [], 100),
            (120, 10, [], 50),  # tasks had waited before anything counted them
            (61, 60, [], 60),
            (100, 65, [40], 60 * 60 / 65),
            (100, 90, [55], 10),
        ],
    )
    def test_a_store_younger_than_the_period_counts_from_its_beginning(
        self, began: int, first: int, later: list[int], gain: float
    ) -> None:
        sample = replace(counters(NOW - first * SECOND, 40), began=NOW - began * SECOND)
        others = [counters(NOW - age * SECOND, 90) for age in later]
        found = since(facts(samples=[*others, sample]), self.CURRENT, MINUTE)
        assert asdict(found) == pytest.approx(asdict(grown(gain)))

    @quick
    @given(st.integers(1, 100_000), st.integers(0, 100), st.floats(1.0, 5_000.0))
    def test_a_sample_that_is_too_old_counts_in_proportion(
        self, age: int, before: int, period: float
    ) -> None:
        found = since(facts(samples=[counters(NOW - age * SECOND, before)]), self.CURRENT, period)
        share = period / age if age > period else 1.0
        assert asdict(found) == pytest.approx(asdict(grown(share * (100 - before))))


def test_a_store_without_tasks_or_workers_has_nothing_to_tell() -> None:
    stats = stats_of(facts(workers=[]))
    assert stats.queues == {band: BandStats(0, 0.0) for band in Band}
    assert stats.workers == WorkerStats(0, 0, 0, 0, 0, 0)
    assert stats.throughput == Throughput(0, 0, 0, None, 0)
    assert stats.by_status == dict.fromkeys(State, 0)
    assert stats.by_type == {}
    assert (stats.dlq_size, stats.p50_age_seconds, stats.p95_age_seconds) == (0, 0.0, 0.0)
    assert stats.recovery == Recovery(0, 0, 0)


class TestQueues:
    def test_depth_and_age_are_those_of_all_streams_of_a_band(self) -> None:
        streams = [
            Stream(1, 5, 10, NOW - 30 * SECOND, NOW),
            Stream(2, 7, 5, NOW - 90 * SECOND, NOW),
            Stream(1, 6, 1, NOW - 60 * SECOND, NOW),
            Stream(1, 10, 2, NOW - SECOND // 2, NOW),
            Stream(1, 0, 3, NOW - 9_000 * SECOND, NOW),
        ]
        assert stats_of(facts(streams=streams)).queues == {
            Band.LOW: BandStats(3, 9_000.0),
            Band.MEDIUM: BandStats(16, 90.0),
            Band.HIGH: BandStats(0, 0.0),
            Band.CRITICAL: BandStats(2, 0.5),
        }

    def test_ages_are_those_of_all_streams_together(self) -> None:
        streams = [
            evenly(60, NOW - 10 * SECOND, 0),
            evenly(37, NOW - 500 * SECOND, 0, level=2),
            evenly(3, NOW - 9_000 * SECOND, 0, lane=2),
        ]
        stats = stats_of(facts(streams=streams))
        assert stats.p50_age_seconds == pytest.approx(10.0, abs=MILLISECOND)
        assert stats.p95_age_seconds == pytest.approx(500.0, abs=MILLISECOND)


class TestWorkers:
    def test_they_are_counted_by_what_they_can_do(self) -> None:
        workers = [
            worker(capacity=10, current_tasks=("a", "b"), load=9),
            worker(capacity=5, status=WorkerStatus.DRAINING, current_tasks=("c",)),
            worker(capacity=3, status=WorkerStatus.UNHEALTHY),
            worker(capacity=100, status=WorkerStatus.DEAD, current_tasks=("d",)),
            worker(capacity=1),
        ]
        assert stats_of(facts(workers=workers)).workers == WorkerStats(
            active=2, draining=1, unhealthy=1, dead=1, total_capacity=19, used_capacity=3
        )

    @pytest.mark.parametrize("status", WorkerStatus)
    def test_one_whose_lease_has_run_out_is_as_good_as_dead(self, status: WorkerStatus) -> None:
        lost = worker(status=status, lost=True, current_tasks=("a",))
        assert stats_of(facts(workers=[lost])).workers == WorkerStats(0, 0, 0, 1, 0, 0)


class TestThroughput:
    TALLIES = (
        tally(None, State.QUEUED, 1_000),
        tally(State.QUEUED, State.EXECUTING, 900),
        tally(State.EXECUTING, State.COMPLETED, 600, seconds=300.0),
        tally(State.EXECUTING, State.RETRYING, 90, "timeout"),
        tally(State.EXECUTING, State.FAILED, 10, "not_retriable"),
        Tally(apart(STALE_RESULTS), 30, 0.0),
        Tally(apart(LOST_WORKERS), 20, 0.0),
    )

    def test_without_samples_everything_counts(self) -> None:
        stats = stats_of(facts(tallies=list(self.TALLIES)))
        assert stats.throughput == Throughput(1_000, 600, 100, 0.5, 600)
        assert stats.recovery == Recovery(90, 20, 30)

    def test_the_last_minute_and_the_last_hour_are_told_apart(self) -> None:
        minute = Sample(
            NOW - 60 * SECOND,
            submitted=990,
            completed=500,
            failed=97,
            timeouts=89,
            lost_workers=20,
            stale_results=30,
            seconds=275.0,
        )
        hour = Sample(
            NOW - 3600 * SECOND, completed=120, timeouts=40, lost_workers=15, stale_results=28
        )
        stats = stats_of(facts(tallies=list(self.TALLIES), samples=[minute, hour]))
        assert stats.throughput == Throughput(10, 100, 3, 0.25, 480)
        assert stats.recovery == Recovery(50, 5, 2)

    def test_parts_of_a_task_are_rounded(self) -> None:
        then = Sample(NOW - 90 * SECOND, submitted=996, completed=598, failed=99, seconds=299.0)
        found = stats_of(facts(tallies=list(self.TALLIES), samples=[then])).throughput
        assert found == Throughput(3, 1, 1, found.avg_task_duration_seconds, 2)
        assert found.avg_task_duration_seconds == pytest.approx(0.5)

        hour = Sample(NOW - 7200 * SECOND, timeouts=83, lost_workers=17, stale_results=25)
        stats = stats_of(facts(tallies=list(self.TALLIES), samples=[hour]))
        assert stats.recovery == Recovery(4, 2, 2)
        assert all(isinstance(count, int) for count in asdict(stats.recovery).values())
        assert isinstance(stats.throughput.submitted_last_minute, int)

    def test_runs_have_no_length_while_nothing_completes(self) -> None:
        current = sample_of(self.TALLIES, NOW - 60 * SECOND)
        stats = stats_of(facts(tallies=list(self.TALLIES), samples=[current]))
        assert stats.throughput == Throughput(0, 0, 0, None, 0)


LANES = {
    1: Lane(1, "default", "email", ()),
    2: Lane(2, "bulk", "email", ()),
    3: Lane(3, "default", "crawl", ()),
}


class TestCounts:
    TALLIES = (
        tally(None, State.QUEUED, 10, lane=1),
        tally(None, State.DEAD_LETTER, 4, lane=2),
        tally(None, State.QUEUED, 3, lane=3),
        tally(State.QUEUED, State.COMPLETED, 1, lane=3),
        tally(None, State.FAILED, 2, lane=9),
        Tally(apart(STALE_RESULTS), 5, 0.0),
    )

    def test_states_are_counted_over_all_lanes(self) -> None:
        stats = stats_of(facts(tallies=list(self.TALLIES), lanes=LANES))
        assert stats.by_status == census(self.TALLIES)
        assert stats.by_status[State.FAILED] == 2
        assert stats.dlq_size == 4

    def test_types_are_counted_over_their_lanes_and_listed_by_name(self) -> None:
        stats = stats_of(facts(tallies=list(self.TALLIES), lanes=LANES))
        assert stats.by_type == {
            "crawl": dict.fromkeys(State, 0) | {State.QUEUED: 2, State.COMPLETED: 1},
            "email": dict.fromkeys(State, 0) | {State.QUEUED: 10, State.DEAD_LETTER: 4},
        }
        assert list(stats.by_type) == ["crawl", "email"]


def test_tasks_that_have_waited_for_more_than_ten_minutes_are_at_risk() -> None:
    streams = [
        Stream(1, 2, 101, NOW - 1_000 * SECOND, NOW),
        Stream(1, 8, 7, NOW - 700 * SECOND, NOW - 650 * SECOND),
        Stream(1, 5, 9, NOW - 500 * SECOND, NOW),
    ]
    assert at_risk(streams, NOW) == 40 + 7
    assert at_risk([], NOW) == 0
