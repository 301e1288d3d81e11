"""Counting: every counter in the system is a sum over counted transitions.

An engine adds up, per batch, how many tasks of a lane and level went from one state to another,
under which label and in how much time. Depths, totals, rates, retries by reason, promotions and
duration histograms are all sums over these rows, so they cannot disagree with each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from fairlane.core.machine import Move
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import NOWHERE, State

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper bounds in seconds of the duration histogram; one further bucket takes the rest."""

BUCKETS_IN_MICROSECONDS = tuple(round(bound * MICROSECONDS) for bound in BUCKETS)

UNTIMED = -1
"""The bucket of a transition that has no duration."""


class TallyKey(NamedTuple):
    """What is counted apart. States are codes; 0 is "no task".

    `label` is the reason of a retry or an end, or the level a claimed task was raised to by age.
    `bucket` is that of the duration: how long a run took that ends with the transition, or how long
    a claimed task had been ready.
    """

    lane: int
    level: int
    source: int
    target: int
    label: str = ""
    bucket: int = UNTIMED


class Tally(NamedTuple):
    """How many times, and how many seconds those took together."""

    key: TallyKey
    times: int
    seconds: float


MOVED = "moved"
"""The label of a task that changes its level: it leaves one and enters another."""


STALE_RESULTS = "stale_results"
LOST_WORKERS = "lost_workers"
"""Labels of what is counted although no task changed its state: see `apart`."""


def apart(label: str) -> TallyKey:
    """Return the key for counting something other than a transition."""
    return TallyKey(0, 0, NOWHERE, NOWHERE, label)


def keys_of(
    move: Move, lane: int, level: int, source: int, seconds: float | None = None
) -> list[TallyKey]:
    """Return what is counted when a task of this lane and level moves from `source`.

    A task whose level changes leaves one level and enters another.
    """
    target = move.state.code
    if move.level is None or move.level == level:
        return [TallyKey(lane, level, source, target, move.label, bucket_of(seconds))]
    return [
        TallyKey(lane, level, source, NOWHERE, MOVED),
        TallyKey(lane, move.level, NOWHERE, target, MOVED),
    ]


def bucket_of(seconds: float | None) -> int:
    """Return the histogram bucket that a duration falls into."""
    return UNTIMED if seconds is None else bisect_left(BUCKETS, seconds)


def waits_of(ready_at: Sequence[int], now: int) -> list[tuple[int, int, float]]:
    """Return how long claimed tasks had been ready, as (bucket, how many, seconds together).

    `ready_at` ascends, as claims take tasks.
    """
    first, last = (bucket_of_wait(now - ready_at[end]) for end in (0, -1))
    if first == last:
        return [(first, len(ready_at), _seconds_since(ready_at, now))]
    found: dict[int, list[int]] = {}
    for each in ready_at:
        found.setdefault(bucket_of_wait(now - each), []).append(each)
    return [(bucket, len(some), _seconds_since(some, now)) for bucket, some in found.items()]


def bucket_of_wait(microseconds: int) -> int:
    """Return the histogram bucket that a wait falls into."""
    return bisect_left(BUCKETS_IN_MICROSECONDS, microseconds)


def _seconds_since(times: Sequence[int], now: int) -> float:
    # A clock that stepped back makes no wait negative.
    return max(0, len(times) * now - sum(times)) / MICROSECONDS


def census(tallies: Iterable[Tally]) -> dict[State, int]:
    """Return how many tasks there are in each state."""
    found = dict.fromkeys(State, 0)
    for key, times, _ in tallies:
        if key.source:
            found[State.of(key.source)] -= times
        if key.target:
            found[State.of(key.target)] += times
    return found


def total_of(
    tallies: Iterable[Tally],
    states: Collection[State] | None,
    lanes: Collection[int],
    levels: Collection[int] | None,
) -> int:
    """Return how many tasks there are in these states, lanes and levels (None: in any)."""
    codes = {state.code for state in (State if states is None else states)}
    return sum(
        times * ((key.target in codes) - (key.source in codes))
        for key, times, _ in tallies
        if key.lane in lanes and (levels is None or key.level in levels)
    )
