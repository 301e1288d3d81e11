"""Tasks that no worker serves."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.facts import Stream
from fairlane.core.lanes import Controls, Lane, Rules, serves
from fairlane.core.model import Worker, WorkerStatus
from fairlane.core.stats import UNSERVED, stats_of
from fairlane.core.unserved import UNSERVED_SECONDS, UnservedLane, unserved
from tests.unit.make import NOW, SECOND, facts, stored, worker

LANES = {
    1: Lane(1, "default", "email", ()),
    2: Lane(2, "video", "render", ("gpu",)),
    3: Lane(3, "default", "idle", ()),
}
OLD = NOW - 100 * SECOND
STREAMS = [
    Stream(2, 5, 3, OLD, NOW),
    Stream(2, 9, 4, OLD - 50 * SECOND, NOW),
    Stream(1, 5, 1, OLD, NOW),
]
RENDER = UnservedLane("video", "render", ("gpu",), 7, 150.0)
EMAIL = UnservedLane("default", "email", (), 1, 100.0)


def found(*workers: Worker, **changes: Any) -> list[UnservedLane]:
    return unserved(facts(**{"lanes": LANES, "streams": STREAMS, "workers": workers} | changes))


def test_without_workers_nothing_is_served_and_the_oldest_comes_first() -> None:
    assert found() == [RENDER, EMAIL]


@pytest.mark.parametrize(
    ("offers", "left"),
    [
        ({}, [RENDER]),
        ({"capabilities": frozenset({"gpu", "ssd"})}, []),
        ({"types": frozenset({"render"})}, [RENDER, EMAIL]),
        ({"queues": frozenset({"video"}), "capabilities": frozenset({"gpu"})}, [EMAIL]),
        ({"types": frozenset({"email"}), "status": WorkerStatus.DRAINING}, [RENDER]),
        ({"status": WorkerStatus.UNHEALTHY}, [RENDER]),
        ({"status": WorkerStatus.DEAD}, [RENDER, EMAIL]),
        ({"lost": True}, [RENDER, EMAIL]),
    ],
)
def test_a_living_worker_serves_what_it_offers(
    offers: dict[str, Any], left: list[UnservedLane]
) -> None:
    assert found(worker(**offers)) == left


def test_a_type_that_all_of_its_workers_hold_back_is_not_served() -> None:
    able = {"capabilities": frozenset({"gpu"})}
    holding = worker(health={"held_back": ["email"]}, **able)
    assert found(holding) == [replace(EMAIL, held_back=True)]
    assert found(holding, worker(types=frozenset({"render"}), **able)) == [
        replace(EMAIL, held_back=True)
    ]
    assert found(holding, worker(**able)) == []
    assert found(replace(holding, lost=True)) == [RENDER, EMAIL]


def test_workers_may_be_about_to_start() -> None:
    ready = NOW - int(UNSERVED_SECONDS * SECOND)
    assert found(streams=[Stream(1, 5, 1, ready, NOW)]) == []
    assert len(found(streams=[Stream(1, 5, 1, ready - 1, NOW)])) == 1


@pytest.mark.parametrize(
    "controls",
    [
        Controls(everything=Rules(paused=True)),
        Controls(paused_queues=frozenset({"default", "video"})),
        Controls(types={"email": Rules(paused=True), "render": Rules(paused=True)}),
    ],
)
def test_what_is_paused_waits_for_the_operator(controls: Controls) -> None:
    assert found(controls=controls) == []


def test_statistics_list_the_oldest() -> None:
    lanes = {n: Lane(n, "q", f"t{n}", ()) for n in range(UNSERVED + 5)}
    streams = [Stream(n, 5, 1, OLD - n, NOW) for n in lanes]
    stats = stats_of(facts(lanes=lanes, streams=streams, workers=[]))
    assert [lane.type for lane in stats.unserved] == [f"t{n}" for n in range(UNSERVED + 4, 4, -1)]


def test_a_task_and_a_lane_ask_for_the_same() -> None:
    task = stored(capabilities=("gpu",))
    assert not serves(worker(), task)
    assert serves(worker(capabilities=frozenset({"gpu"})), task)
