"""Queues and types one by one: what is set for each, and what is in it. From `Facts` alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from fairlane.core.facts import Facts
from fairlane.core.lanes import UNRULED, Lane, Rules, is_paused
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.tally import Tally, census


class QueueFacts(msgspec.Struct, frozen=True):
    """A queue. `oldest_age_seconds`: how long its oldest queued task has been ready."""

    queue: str
    paused: bool
    by_status: Mapping[State, int]
    oldest_age_seconds: float


class TypeFacts(msgspec.Struct, frozen=True):
    """A type. `held` counts the slots that are taken: what a concurrency limit goes by."""

    type: str
    rules: Rules
    held: int
    by_status: Mapping[State, int]


def queues_of(facts: Facts) -> list[QueueFacts]:
    """Return every queue that has had a task or is paused, by name."""
    found = census_by(facts, lambda lane: lane.queue)
    oldest: dict[str, int] = {}
    for stream in facts.streams:
        lane = facts.lanes.get(stream.lane)
        if lane is not None:
            oldest[lane.queue] = min(stream.oldest, oldest.get(lane.queue, stream.oldest))
    paused = facts.controls.paused_queues
    return [
        QueueFacts(
            name,
            name in paused,
            found.get(name, _NONE),
            max(0, facts.now - oldest.get(name, facts.now)) / MICROSECONDS,
        )
        for name in sorted(found.keys() | paused)
    ]


def types_of(facts: Facts, defined: Iterable[str] = ()) -> list[TypeFacts]:
    """Return every type that has had a task, that something is set for, or that is defined, by
    name."""
    found = census_by(facts, lambda lane: lane.type)
    held: Counter[str] = Counter()
    for lane_id, count in facts.held.items():
        lane = facts.lanes.get(lane_id)
        if lane is not None:
            held[lane.type] += count
    rules = facts.controls.types
    return [
        TypeFacts(name, rules.get(name, UNRULED), held[name], found.get(name, _NONE))
        for name in sorted({*found, *rules, *defined})
    ]


class Demand(msgspec.Struct, frozen=True):
    """The tasks that need a capability. `paused`: the queued ones whose queue or type is paused."""

    queued: int = 0
    executing: int = 0
    paused: int = 0


def demand_of(facts: Facts, queue: str | None = None) -> dict[str, Demand]:
    """Return how many tasks need each capability; of one queue if it is named.

    A task that needs two capabilities counts for both.
    """
    found: dict[str, Demand] = {}
    by_lane: dict[int, list[Tally]] = {}
    for tally in facts.tallies:
        by_lane.setdefault(tally.key.lane, []).append(tally)
    for lane in facts.lanes.values():
        if queue in (None, lane.queue) and lane.capabilities:
            counted = census(by_lane.get(lane.id, ()))
            queued, executing = counted[State.QUEUED], counted[State.EXECUTING]
            paused = queued if is_paused(lane, facts.controls) else 0
            for capability in lane.capabilities:
                so_far = found.get(capability, Demand())
                found[capability] = Demand(
                    so_far.queued + queued, so_far.executing + executing, so_far.paused + paused
                )
    return dict(sorted(found.items()))


def census_by(facts: Facts, name_of: Callable[[Lane], str]) -> dict[str, dict[State, int]]:
    """Return how many tasks there are in each state, by queue or type."""
    tallies: dict[str, list[Tally]] = {}
    for tally in facts.tallies:
        lane = facts.lanes.get(tally.key.lane)
        if lane is not None:
            tallies.setdefault(name_of(lane), []).append(tally)
    return {name: census(found) for name, found in sorted(tallies.items())}


_NONE: Mapping[State, int] = dict.fromkeys(State, 0)
