"""The counted transitions of a store, added up by the labels of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fairlane.core import limits
from fairlane.core.facts import Facts
from fairlane.core.machine import NOT_STARTED, TIMED_OUT, WORKER_LOST
from fairlane.core.priority import Band, band_of
from fairlane.core.states import NOWHERE, TERMINAL, State
from fairlane.core.tally import (
    BUCKETS,
    LOST_WORKERS,
    MOVED,
    STALE_RESULTS,
    UNTIMED,
    Tally,
    TallyKey,
)

NO_STATE = "none"
"""What a task was before its submission."""


OTHER = "other"
"""The label of all names that get none of their own, and of lanes that were dropped. A queue or
type that has this name is counted with them."""


def labels_of(sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the label of each name: its own for those that count most, OTHER for the rest.

    Submitters choose the names, and a collector of metrics stores a series for every label.
    """
    ranked = sorted(sizes, key=lambda name: (-sizes[name], name))
    return {name: name if n < limits.METRIC_NAMES else OTHER for n, name in enumerate(ranked)}


class Durations:
    """A histogram: the number of durations in each bucket, and their sum."""

    __slots__ = ("_bounds", "_buckets", "seconds")

    def __init__(self, bounds: Sequence[float] = BUCKETS) -> None:
        self._bounds = (*bounds, float("inf"))
        self._buckets = [0] * len(self._bounds)
        self.seconds = 0.0

    def add(self, bucket: int, times: int, seconds: float) -> None:
        self._buckets[bucket] += times
        self.seconds += seconds

    def add_all(self, buckets: Sequence[int], seconds: float) -> None:
        """Add numbers of durations, one for each bucket, and their sum."""
        for bucket, times in enumerate(buckets):
            self._buckets[bucket] += times
        self.seconds += seconds

    def cumulative(self) -> list[tuple[float, int]]:
        """Return (upper bound, number of durations up to it), the last bound being infinity."""
        total = 0
        found = []
        for bound, times in zip(self._bounds, self._buckets, strict=True):
            total += times
            found.append((bound, total))
        return found


class Counts:
    """Sums of tallies. They only grow."""

    def __init__(self, facts: Facts) -> None:
        self.submitted: Counter[tuple[str, Band]] = Counter()
        self.ended: Counter[tuple[str, State]] = Counter()
        self.failed: Counter[str] = Counter()
        self.retries: Counter[tuple[Band, str]] = Counter()
        self.promoted: Counter[tuple[Band, Band]] = Counter()
        self.by_band: dict[tuple[Band, State], Durations] = {}
        self.by_type: dict[str, Durations] = {}
        self.waits: dict[Band, Durations] = {band: Durations() for band in Band}
        self.dead_letters: Counter[str] = Counter()
        self.transitions: Counter[tuple[str, str]] = Counter()
        self.timeouts = 0
        self.lost_workers = 0
        self.stale_results = 0
        types = _types_of(facts)
        for tally in facts.tallies:
            self._add(tally, types.get(tally.key.lane, OTHER))

    def _add(self, tally: Tally, type: str) -> None:
        key, times, _ = tally
        if (pair := _states_of(key)) is not None:
            self.transitions[pair] += times
        if key.label == LOST_WORKERS:
            self.lost_workers += times
        elif key.label == STALE_RESULTS:
            self.stale_results += times
        elif key.source == NOWHERE:
            if key.target != NOWHERE and not key.label:
                self.submitted[type, band_of(key.level)] += times
        elif key.target != NOWHERE:
            self._add_transition(tally, type)

    def _add_transition(self, tally: Tally, type: str) -> None:
        key, times, seconds = tally
        source, target, band = State.of(key.source), State.of(key.target), band_of(key.level)
        if target is State.EXECUTING and key.label:
            self.promoted[band, band_of(int(key.label))] += times
        if source is State.EXECUTING and key.label == TIMED_OUT:
            self.timeouts += times
        if _is_retry(key):
            self.retries[band, key.label] += times
        if target in _FAILURES:
            self.failed[key.label] += times
        if target is State.DEAD_LETTER:
            self.dead_letters[key.label] += times
        if target is State.EXECUTING and key.bucket != UNTIMED:
            self.waits[band].add(key.bucket, times, seconds)
            return
        if key.bucket != UNTIMED:
            self.by_band.setdefault((band, target), Durations()).add(key.bucket, times, seconds)
            self.by_type.setdefault(type, Durations()).add(key.bucket, times, seconds)
        if target in TERMINAL:
            self.ended[type, target] += times


def _types_of(facts: Facts) -> dict[int, str]:
    """Return the label of each lane's type."""
    sizes = {lane.type: 0 for lane in facts.lanes.values()}
    for key, times, _ in facts.tallies:
        lane = facts.lanes.get(key.lane)
        if lane is not None:
            sizes[lane.type] += times
    labels = labels_of(sizes)
    return {lane.id: labels[lane.type] for lane in facts.lanes.values()}


_FAILURES = frozenset({State.FAILED, State.DEAD_LETTER})


def _states_of(key: TallyKey) -> tuple[str, str] | None:
    """Return the states of a transition ("none" before a submission); None: it is another count.

    Deleting a task is no transition. A replay at another level is counted where it leaves its level
    and where it enters another one: only the first tells where it came from.
    """
    if key.label == MOVED:
        return (State.of(key.source), State.QUEUED) if key.source != NOWHERE else None
    if key.target == NOWHERE:
        return None
    return State.of(key.source) if key.source != NOWHERE else NO_STATE, State.of(key.target)


def _is_retry(key: TallyKey) -> bool:
    """Return whether a run ended and will be followed by another one."""
    if key.target == State.RETRYING.code:
        return True
    return key.target == State.QUEUED.code and key.label in {WORKER_LOST, NOT_STARTED}
