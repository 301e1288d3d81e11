"""Lanes that nothing uses: which, since when, and when they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.core import limits, unused_lanes
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.lanes import Controls, Lane, Rules
from fairlane.core.model import WorkerStatus
from fairlane.core.states import State
from fairlane.core.unused_lanes import Rest, overdue, resting
from tests.unit.make import NOW, SECOND, facts, tally, worker
from tests.unit.shelf import Shelf, once

LANES = {1: Lane(1, "a", "mail", ()), 2: Lane(2, "b", "sms", ()), 3: Lane(3, "a", "newest", ())}
USED_ONCE = [tally(None, State.QUEUED, 2, lane=1), tally(State.QUEUED, None, 2, lane=1)]


def found(**changes: Any) -> set[int]:
    return set(resting(facts(lanes=LANES, **changes), {}))


def test_a_lane_is_unused_without_tasks_and_rules() -> None:
    assert found() == {1, 2}
    assert found(tallies=USED_ONCE) == {1, 2}
    assert found(tallies=USED_ONCE[:1]) == {2}
    assert found(held={2: 1}) == {1}
    assert found(controls=Controls(paused_queues=frozenset({"b"}))) == {1}
    rules = {"mail": Rules(rate=1.0), "sms": Rules()}
    assert found(controls=Controls(types=rules)) == {2}
    assert resting(facts(lanes={}), {}) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {2}),
        ({"lost": True}, {1, 2}),
        ({"status": WorkerStatus.DEAD}, {1, 2}),
        ({"status": WorkerStatus.DRAINING}, {2}),
        ({"types": None}, {1, 2}),
    ],
)
def test_a_lane_is_used_while_a_living_worker_names_its_type(
    changes: dict[str, Any], expected: set[int]
) -> None:
    serving = worker(**{"types": frozenset({"mail"}), **changes})
    assert found(workers=[serving]) == expected


def test_since_when() -> None:
    first = resting(facts(lanes=LANES, tallies=USED_ONCE), {})
    assert first == {1: Rest(NOW, 4), 2: Rest(NOW, 0)}
    later = facts(lanes=LANES, tallies=USED_ONCE, now=NOW + SECOND)
    assert resting(later, first) == first
    again = facts(lanes=LANES, tallies=USED_ONCE * 2, now=NOW + SECOND)
    assert resting(again, first) == {1: Rest(NOW + SECOND, 8), 2: Rest(NOW, 0)}
    set_back = facts(lanes=LANES, tallies=USED_ONCE, now=NOW - SECOND)
    assert resting(set_back, first) == {1: Rest(NOW - SECOND, 4), 2: Rest(NOW - SECOND, 0)}


def test_when_they_go() -> None:
    hour, minute = (
        int(seconds * SECOND) for seconds in (limits.LANE_SECONDS, limits.LANE_SECONDS_CROWDED)
    )
    unused = {1: Rest(NOW - hour, 0), 2: Rest(NOW - hour - 1, 0), 3: Rest(NOW - minute, 0)}
    full = int(limits.LANES * limits.CROWDED)
    assert overdue(unused, full, NOW) == [2, 1]
    assert overdue(unused, full + 1, NOW) == [2, 1, 3]
    assert overdue(unused, full + 1, NOW - 1) == [2, 1]


class Store(Shelf):
    def __init__(self) -> None:
        super().__init__()
        self.lanes = dict(LANES)
        self.asked: list[list[int]] = []

    def facts(self) -> Op[Facts]:
        @reads
        def read(self: Store) -> Flow[Facts]:
            yield from ()
            return facts(lanes=self.lanes, now=self.now)

        return read(self)

    def remove_lanes(self, facts: Facts, lanes: Sequence[int]) -> Flow[int]:
        yield from ()
        assert facts.lanes.keys() >= set(lanes)
        self.asked.append(list(lanes))
        for lane in lanes:
            del self.lanes[lane]
        return len(lanes)


def test_lanes_are_dropped_by_the_look_after_their_time() -> None:
    store = Store()
    assert store.run(unused_lanes.drop_lanes(store)) == 0
    kept = dict(store.of("lanes"))
    store.now += int(limits.LANE_SECONDS * SECOND) - 1
    assert store.run(unused_lanes.drop_lanes(store)) == 0
    assert store.of("lanes") == kept  # nothing to write
    store.now += 1
    assert store.run(unused_lanes.drop_lanes(store)) == 2
    assert store.asked == [[1, 2]]
    assert store.run(unused_lanes.drop_lanes(store)) == 0


def test_two_that_look_at_once() -> None:
    store = Store()
    store.interfere = once(lambda: store.run(unused_lanes.drop_lanes(store)))
    assert store.run(unused_lanes.drop_lanes(store)) == 0
    assert store.of("lanes")["lanes"].version == 1
