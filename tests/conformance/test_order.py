"""Order: effective priority, then ready_at, then id; nothing starves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlane.core.model import TaskError, Verdict
from fairlane.core.outcomes import Failed, Released, Snoozed
from fairlane.core.store_settings import DEFAULT
from fairlane.core.submission import new_task
from tests.fixtures.stores import World


async def names(store: World, worker: str, slots: int = 100) -> list[str]:
    return [task.payload.decode().split('"')[3] for task in await store.claim(worker, slots)]


async def put(store: World, name: str, priority: str | int = 5, **options: Any) -> str:
    return await store.submit(payload={"name": name}, priority=priority, **options)


async def test_by_priority_then_by_age(store: World) -> None:
    for name, priority in [("a", 5), ("b", 10), ("c", 0), ("d", 5), ("e", 8), ("f", 10)]:
        await put(store, name, priority)
    assert await names(store, await store.worker()) == ["b", "f", "e", "a", "d", "c"]


async def test_one_at_a_time_is_the_same_order(store: World) -> None:
    for name, priority in [("a", 2), ("b", 7), ("c", 5), ("d", 7), ("e", 2)]:
        await put(store, name, priority)
    worker = await store.worker()
    assert [(await names(store, worker, 1))[0] for _ in range(5)] == ["b", "d", "c", "a", "e"]


async def test_a_batch_keeps_its_order(store: World) -> None:
    await store.submit_all([new_task("work", {"name": f"{n:04}"}) for n in range(700)])
    worker = await store.worker()
    first, second = await names(store, worker, 500), await names(store, worker, 500)
    assert first + second == [f"{n:04}" for n in range(700)]


async def test_lanes_are_merged_by_age(store: World) -> None:
    """Many types, queues and capabilities: still first come, first served."""
    for n in range(40):
        await put(
            store,
            f"{n:02}",
            type=f"type-{n % 5}",
            queue=f"queue-{n % 3}",
            required_capabilities=[] if n % 2 else ["gpu"],
        )
    worker = await store.worker()
    grants = [await store.claim(worker, 7, capabilities=frozenset({"gpu"})) for _ in range(6)]
    claimed = [task.payload for grant in grants for task in grant]
    assert claimed == [b'{"name":"%02d"}' % n for n in range(40)]


@pytest.mark.parametrize("slots", [3, 100])
@pytest.mark.parametrize("limited", [False, True])
async def test_hundreds_of_lanes_are_merged_by_priority_and_age(
    store: World, limited: bool, slots: int
) -> None:
    """Most of them are empty, or not the worker's; two thirds of the tasks have aged."""
    draw = random.Random(6)
    await store.submit_all([new_task(f"type-{n}", queue=f"queue-{n % 2}") for n in range(300)])
    worker = await store.worker(capacity=1_000)
    assert len(await store.claim(worker, 300)) == 300
    expected = []
    for waits in (1900.0, 700.0, 0.0):
        tasks = [
            new_task(
                f"type-{draw.randrange(300)}",
                {"name": f"{waits:.0f}-{n:03}"},
                queue=f"queue-{n % 2}",
                priority=draw.choice((0, 2, 5, 8)),
                required_capabilities=["gpu"] if n % 5 == 0 else [],
            )
            for n in range(60)
        ]
        await store.submit_all(tasks)
        effective = DEFAULT.aging.effective
        expected += [
            (-effective(task.level, round(waits * 1e6)), -waits, task.payload)
            for task in tasks
            if task.queue == "queue-1" and not task.capabilities
        ]
        await store.advance({1900.0: 1200.0, 700.0: 700.0, 0.0: 0.0}[waits])
    if limited:
        await store.run(store.ops.limit("type-7", concurrency=900))
    claimed = []
    while grant := await store.claim(worker, slots, queues=frozenset({"queue-1"})):
        claimed += [task.payload for task in grant]
    assert claimed == [payload for *_, payload in sorted(expected)]


@pytest.mark.parametrize(
    ("priority", "waited", "counts_as"),
    [
        (0, 599, 0),
        (2, 600, 5),
        (4, 1799, 5),
        (2, 1800, 8),
        (5, 1199, 5),
        (5, 1200, 8),
        (7, 1200, 8),
        (8, 1_000_000, 8),
        (9, 1_000_000, 9),
        (2, 1_000_000, 8),
        (10, 1_000_000, 10),
    ],
)
async def test_age_raises_priority(
    store: World, priority: int, waited: int, counts_as: int
) -> None:
    """After its wait the task goes before a newer one of the level it counts as, not above."""
    await put(store, "old", priority)
    await store.advance(waited)
    await put(store, "same", counts_as)
    if counts_as < 10:
        await put(store, "above", counts_as + 1)
        expected = ["above", "old", "same"]
    else:
        expected = ["old", "same"]
    assert await names(store, await store.worker()) == expected


async def test_age_shows_in_the_task(store: World) -> None:
    task_id = await put(store, "old", "low")
    await store.advance(700)
    assert (await store.task(task_id)).effective_priority == 5
    assert (await store.task(task_id)).priority == 2


async def test_an_aged_backlog_of_several_levels_is_first_come_first_served(store: World) -> None:
    for n, priority in enumerate([0, 5, 3, 7, 2, 6]):
        await put(store, f"{n}", priority)
    await store.advance(2_000)
    await put(store, "new", 8)
    assert await names(store, await store.worker()) == ["0", "1", "2", "3", "4", "5", "new"]


async def test_critical_is_never_delayed_by_an_aged_backlog(store: World) -> None:
    for n in range(5):
        await put(store, f"old{n}", "medium")
    await store.advance(10_000)
    await put(store, "express", "critical")
    assert (await names(store, await store.worker(), 1)) == ["express"]


async def test_a_retry_keeps_its_place(store: World) -> None:
    worker = await store.worker()
    await put(store, "first")
    await put(store, "second")
    first = await store.claim_one(worker)
    assert await store.settle(first, Failed(TaskError("no"))) is Verdict.APPLIED
    await store.advance(5)
    assert await names(store, worker) == ["first", "second"]


async def test_a_release_keeps_its_place(store: World) -> None:
    worker = await store.worker()
    await put(store, "first")
    await put(store, "second")
    await store.settle(await store.claim_one(worker), Released(), seconds=None)
    assert await names(store, worker) == ["first", "second"]


async def test_a_snoozed_task_queues_up_again(store: World) -> None:
    worker = await store.worker()
    await put(store, "first")
    await put(store, "second")
    await store.settle(await store.claim_one(worker), Snoozed(10))
    await store.advance(5)
    await put(store, "third")
    await store.advance(20)
    await put(store, "fourth")
    assert await names(store, worker) == ["second", "third", "first", "fourth"]


async def test_a_replayed_task_queues_up_again(store: World) -> None:
    worker = await store.worker()
    first = await put(store, "first")
    await store.run(store.ops.cancel([first]))
    await put(store, "second")
    await store.run(store.ops.replay([first]))
    assert await names(store, worker) == ["second", "first"]


async def test_a_scheduled_task_counts_from_its_time(store: World) -> None:
    worker = await store.worker()
    await put(store, "later", delay_seconds=10)
    await put(store, "now")
    await store.advance(11)
    await put(store, "last")
    assert await names(store, worker) == ["now", "later", "last"]
