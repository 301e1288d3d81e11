"""Lanes: a worker gets what it can do, and nothing that is paused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from fairlane.core.ids import new_id
from fairlane.core.model import Ask
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement

LANES = 6_000
MOST = 5
"""How many times as long a claim may take with so many lanes. It takes at most twice as long; an
engine that looks at each of them takes ten times as long (SQLite, Redis), or fifty (PostgreSQL)."""
GPU = frozenset({"gpu"})


async def types(store: World, worker: str, **options: object) -> list[str]:
    return [task.type for task in await store.claim(worker, 100, **options)]


async def test_a_worker_gets_only_types_it_names(store: World) -> None:
    for type in ("a", "b", "c"):
        await store.submit(type)
    worker = await store.worker()
    assert await types(store, worker, types=frozenset({"b", "x"})) == ["b"]
    assert await types(store, worker, types=frozenset()) == []
    assert await types(store, worker) == ["a", "c"]


async def test_a_worker_gets_only_queues_it_names(store: World) -> None:
    await store.submit("a", queue="one")
    await store.submit("b", queue="two")
    worker = await store.worker()
    assert await types(store, worker, queues=frozenset({"two"})) == ["b"]
    assert await types(store, worker) == ["a"]


async def test_a_task_waits_for_a_worker_with_all_its_capabilities(store: World) -> None:
    await store.submit("both", required_capabilities=["gpu", "big"])
    await store.submit("gpu", required_capabilities=["gpu"])
    await store.submit("none")
    worker = await store.worker()
    assert await types(store, worker) == ["none"]
    assert await types(store, worker, capabilities=frozenset({"gpu", "other"})) == ["gpu"]
    assert await types(store, worker, capabilities=frozenset({"gpu", "big"})) == ["both"]


async def test_a_lane_nobody_serves_does_not_hold_up_the_others(store: World) -> None:
    for _ in range(30):
        await store.submit("stuck", priority="critical", required_capabilities=["quantum"])
    await store.submit("fine", priority="low")
    assert await types(store, await store.worker()) == ["fine"]


async def test_a_type_that_appears_later_is_found(store: World) -> None:
    worker = await store.worker()
    assert await types(store, worker) == []
    await store.submit("fresh", queue="fresh")
    assert await types(store, worker) == ["fresh"]


@pytest.mark.parametrize("scope", [{}, {"queue": "q"}, {"type": "t"}])
async def test_pause_and_resume(store: World, scope: dict[str, str]) -> None:
    await store.submit("t", queue="q")
    worker = await store.worker()
    await store.run(store.ops.pause(True, **scope))  # noqa: FBT003
    assert await types(store, worker) == []
    await store.submit("t", queue="q")
    assert await types(store, worker) == []
    await store.run(store.ops.pause(False, **scope))  # noqa: FBT003
    assert await types(store, worker) == ["t", "t"]


async def test_pause_leaves_others_alone(store: World) -> None:
    await store.run(store.ops.pause(True, queue="q"))  # noqa: FBT003
    await store.run(store.ops.pause(True, type="t"))  # noqa: FBT003
    await store.submit("a", queue="q")
    await store.submit("t")
    await store.submit("a")
    worker = await store.worker()
    claimed = await store.claim(worker)
    assert [(task.queue, task.type) for task in claimed] == [("default", "a")]


async def test_pause_is_seen_by_everyone_at_once(store: World) -> None:
    await store.submit()
    worker = await store.worker()
    first, second = store.processes(2)
    await second.run(second.ops.controls())
    await first.run(first.ops.pause(True))  # noqa: FBT003
    grant = await second.run(second.ops.claim(Ask(worker, "request", 10)))
    assert grant.tasks == []


async def test_no_type_is_overlooked_that_comes_up_while_others_claim(store: World) -> None:
    worker = await store.worker()
    claiming, *submitting = store.processes(3)
    found: list[str] = []

    async def claim() -> int:
        grant = await claiming.run(claiming.ops.claim(Ask(worker, new_id(), 10)))
        found.extend(task.type for task in grant.tasks)
        return len(grant.tasks)

    expected = []
    for number in range(15):
        new = [f"type-{number}-{each}" for each in range(len(submitting))]
        expected += new
        # All at once, and the claims one after the other.
        submissions = [
            asyncio.ensure_future(process.run(process.ops.submit([new_task(type)])))
            for process, type in zip(submitting, new, strict=True)
        ]
        while not all(each.done() for each in submissions):
            await claim()
        await asyncio.gather(*submissions)
    while await claim():
        pass
    assert sorted(found) == sorted(expected)


async def idle_claim(store: World, worker: str, **options: Any) -> float:
    """Return the seconds that a claim takes which gets nothing: the least of many, because others
    use the machine, too."""
    least = float("inf")
    for _ in range(50):
        began = time.perf_counter()
        assert await store.claim(worker, 1, **options) == []
        least = min(least, time.perf_counter() - began)
    return least


@pytest.mark.local
@pytest.mark.parametrize("limited", [False, True])
async def test_a_claim_does_not_cost_by_lanes(store: World, limited: bool) -> None:
    """Neither by those of other workers, nor by those that are empty."""
    if limited:
        await store.run(store.ops.limit("type-0", concurrency=LANES))
        await store.run(store.ops.limit(None, rate=1_000_000))
    worker = await store.worker(capacity=LANES)
    before = await idle_claim(store, worker)
    for first in range(0, LANES, 1_000):
        numbers = range(first, first + 1_000)
        tasks = [new_task(f"type-{n}", required_capabilities=GPU) for n in numbers]
        await store.submit_all(tasks)
    assert await idle_claim(store, worker) < MOST * before
    for _ in range(LANES // 500):
        held = await store.claim(worker, 500, capabilities=GPU)
        assert len(held) == 500
        await store.run(store.ops.settle([settlement(task) for task in held]))
    assert await idle_claim(store, worker, capabilities=GPU) < MOST * before


async def test_running_tasks_go_on_when_paused(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    await store.run(store.ops.pause(True))  # noqa: FBT003
    assert await store.settle(task) == "applied"
    assert await store.state(task_id) is State.COMPLETED


async def test_controls_tell_what_is_set(store: World) -> None:
    await store.run(store.ops.pause(True, queue="q"))  # noqa: FBT003
    await store.run(store.ops.pause(True, type="t"))  # noqa: FBT003
    await store.run(store.ops.limit("t", rate=2.5, concurrency=3))
    await store.run(store.ops.limit("u", concurrency=1))
    await store.run(store.ops.limit(None, rate=100))
    told = await store.run(store.ops.pause(True))  # noqa: FBT003
    for controls in (told, await store.run(store.ops.controls())):
        assert controls.everything.paused
        assert controls.everything.rate == 100
        assert controls.paused_queues == {"q"}
        t, u = controls.types["t"], controls.types["u"]
        assert (t.paused, t.rate, t.concurrency) == (True, 2.5, 3)
        assert (u.paused, u.rate, u.concurrency) == (False, 0, 1)
