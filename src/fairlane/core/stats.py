"""What operators read: depths, ages, workers, throughput, recovery. Computed from `Facts` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairlane.core.breakdown import census_by
from fairlane.core.facts import Facts, Sample, Stream, sample_of
from fairlane.core.model import Worker, WorkerStatus
from fairlane.core.priority import MICROSECONDS, Band, band_of
from fairlane.core.states import State
from fairlane.core.tally import census
from fairlane.core.unserved import UnservedLane, unserved

MINUTE = 60.0
HOUR = 3600.0
RISK_SECONDS = 600.0
"""A task that has waited for longer is at risk of starving: aging begins then by default."""

UNSERVED = 20
"""How many lanes that no worker takes from are listed."""


class BandStats(msgspec.Struct, frozen=True):
    """Queued tasks of one band, by the priority they were submitted with."""

    depth: int
    oldest_age_seconds: float


class WorkerStats(msgspec.Struct, frozen=True):
    """How many workers there are in each status, and what the living can do."""

    active: int
    draining: int
    unhealthy: int
    dead: int
    total_capacity: int
    used_capacity: int


class Throughput(msgspec.Struct, frozen=True):
    """The last minute, and the last hour. `failed` counts runs, also those of tasks that are tried
    again."""

    submitted_last_minute: int
    completed_last_minute: int
    failed_last_minute: int
    avg_task_duration_seconds: float | None
    completed_last_hour: int


class Recovery(msgspec.Struct, frozen=True):
    """What had to be put right within the last hour."""

    timeouts_last_hour: int
    lost_workers_last_hour: int
    stale_results_last_hour: int


class Stats(msgspec.Struct, frozen=True):
    """The store at a glance. The percentiles of ages are estimates."""

    queues: Mapping[Band, BandStats]
    workers: WorkerStats
    throughput: Throughput
    by_status: Mapping[State, int]
    by_type: Mapping[str, Mapping[State, int]]
    dlq_size: int
    p50_age_seconds: float
    p95_age_seconds: float
    recovery: Recovery
    unserved: tuple[UnservedLane, ...] = ()
    """Where tasks wait that no worker takes, the oldest first, UNSERVED at most."""


def stats_of(facts: Facts) -> Stats:
    """Return what follows from the facts."""
    by_status = census(facts.tallies)
    current = sample_of(facts.tallies, facts.now)
    minute, hour = since(facts, current, MINUTE), since(facts, current, HOUR)
    return Stats(
        queues=_bands(facts.streams, facts.now),
        workers=_workers(facts.workers),
        throughput=Throughput(
            submitted_last_minute=round(minute.submitted),
            completed_last_minute=round(minute.completed),
            failed_last_minute=round(minute.failed),
            avg_task_duration_seconds=(
                minute.seconds / minute.completed if minute.completed else None
            ),
            completed_last_hour=round(hour.completed),
        ),
        by_status=by_status,
        by_type=census_by(facts, lambda lane: lane.type),
        dlq_size=by_status[State.DEAD_LETTER],
        p50_age_seconds=age_percentile(facts.streams, facts.now, 0.50),
        p95_age_seconds=age_percentile(facts.streams, facts.now, 0.95),
        recovery=Recovery(
            timeouts_last_hour=round(hour.timeouts),
            lost_workers_last_hour=round(hour.lost_workers),
            stale_results_last_hour=round(hour.stale_results),
        ),
        unserved=tuple(unserved(facts)[:UNSERVED]),
    )


class Gain(msgspec.Struct, frozen=True):
    """By how much counters grew within a time."""

    submitted: float
    completed: float
    failed: float
    timeouts: float
    lost_workers: float
    stale_results: float
    seconds: float


def since(facts: Facts, current: Sample, period: float) -> Gain:
    """Return the growth of the counters over the last `period` seconds.

    From the sample nearest to its beginning. One that is older speaks for more than the period, and
    counts in proportion. If the period begins before the first sample of the store, everything
    counts from the store's beginning; so it does without any sample.
    """
    begin = facts.now - int(period * MICROSECONDS)
    past = min(facts.samples, key=lambda sample: abs(sample.at - begin), default=Sample(at=begin))
    if past.began and past.at > begin:
        past = Sample(at=past.began)
    spanned = (facts.now - past.at) / MICROSECONDS
    share = min(1.0, period / spanned) if spanned > 0 else 1.0
    return Gain(
        submitted=share * (current.submitted - past.submitted),
        completed=share * (current.completed - past.completed),
        failed=share * (current.failed - past.failed),
        timeouts=share * (current.timeouts - past.timeouts),
        lost_workers=share * (current.lost_workers - past.lost_workers),
        stale_results=share * (current.stale_results - past.stale_results),
        seconds=share * (current.seconds - past.seconds),
    )


def age_percentile(streams: Iterable[Stream], now: int, share: float) -> float:
    """Return the age in seconds that `share` of the queued tasks do not exceed.

    Only the ends of each stream are known: its tasks are taken to have arrived evenly in between.
    """
    streams = list(streams)
    wanted = share * sum(stream.depth for stream in streams)
    if not wanted:
        return 0.0
    low = min(now - stream.newest for stream in streams)
    high = max(now - stream.oldest for stream in streams)
    while high - low > 1000:  # a millisecond
        middle = (low + high) // 2
        if sum(_younger(stream, now - middle) for stream in streams) < wanted:
            low = middle
        else:
            high = middle
    return max(0, high) / MICROSECONDS


def at_risk(streams: Iterable[Stream], now: int) -> int:
    """Return how many queued tasks have been ready for longer than RISK_SECONDS, about."""
    before = now - int(RISK_SECONDS * MICROSECONDS)
    return round(sum(older_than(stream, before) for stream in streams))


def _younger(stream: Stream, ready_at: int) -> float:
    """Return how many of a stream's tasks became ready at this time or later."""
    return stream.depth - older_than(stream, ready_at)


def older_than(stream: Stream, ready_at: int) -> float:
    """Return how many of a stream's tasks became ready before this time, about."""
    if ready_at <= stream.oldest:
        return 0.0
    if ready_at > stream.newest:
        return float(stream.depth)
    # The newest is not before itself.
    return (stream.depth - 1) * (ready_at - stream.oldest) / (stream.newest - stream.oldest)


def _bands(streams: Iterable[Stream], now: int) -> dict[Band, BandStats]:
    depths = dict.fromkeys(Band, 0)
    oldest = dict.fromkeys(Band, now)
    for stream in streams:
        band = band_of(stream.level)
        depths[band] += stream.depth
        oldest[band] = min(oldest[band], stream.oldest)
    return {band: BandStats(depths[band], (now - oldest[band]) / MICROSECONDS) for band in Band}


def _workers(workers: Iterable[Worker]) -> WorkerStats:
    found = dict.fromkeys(WorkerStatus, 0)
    capacity = used = 0
    for worker in workers:
        status = WorkerStatus.DEAD if worker.lost else worker.status
        found[status] += 1
        if status is not WorkerStatus.DEAD:
            capacity += worker.capacity
            used += len(worker.current_tasks)
    return WorkerStats(
        active=found[WorkerStatus.ACTIVE],
        draining=found[WorkerStatus.DRAINING],
        unhealthy=found[WorkerStatus.UNHEALTHY],
        dead=found[WorkerStatus.DEAD],
        total_capacity=capacity,
        used_capacity=used,
    )
