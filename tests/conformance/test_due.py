"""Due tasks: moved without a claim, and ordered among all that is due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

FLOOD = 1_200
"""More than a claim or `move_due` moves at once."""


async def flood(store: World, type: str = "flood", count: int = FLOOD, **options: Any) -> None:
    """Submit so many tasks that become due in the same instant, a minute from now."""
    options = {"run_at": datetime.now(UTC) + timedelta(seconds=60), **options}
    tasks = [new_task(type, **options) for _ in range(count)]
    for first in range(0, count, limits.SUBMIT_BATCH):
        await store.submit_all(tasks[first : first + limits.SUBMIT_BATCH])


async def test_a_delayed_task_is_queued_without_a_claim(store: World) -> None:
    task_id = await store.submit(delay_seconds=10)
    later = await store.submit(delay_seconds=100)
    due = await store.run(store.ops.move_due())
    assert not due.more
    assert due.next_in is not None
    assert 5 < due.next_in <= 10
    assert await store.state(task_id) is State.SCHEDULED
    await store.advance(11)
    due = await store.run(store.ops.move_due())
    assert not due.more
    assert due.next_in is not None
    assert 80 < due.next_in < 90
    assert await store.state(task_id) is State.QUEUED
    assert await store.state(later) is State.SCHEDULED
    assert await store.depth() == 1


async def test_nobody_waits_for_a_task_that_is_cancelled_or_replayed(store: World) -> None:
    cancelled, replayed = [await store.submit(delay_seconds=50) for _ in range(2)]
    await store.run(store.ops.cancel([cancelled]))
    await store.run(store.ops.replay([replayed]))
    due = await store.run(store.ops.move_due())
    assert (due.more, due.next_in) == (False, None)


async def test_a_retry_is_queued_without_a_claim(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=20))
    await store.advance(21)
    await store.run(store.ops.move_due())
    assert await store.state(task_id) is State.QUEUED


async def test_an_expired_task_ends_without_a_claim(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    waiting = [
        await store.submit(expires_at=soon),
        await store.submit(expires_at=soon, delay_seconds=100),
    ]
    parent = waiting[0]
    child = await store.submit(depends_on=[parent])
    await store.advance(61)
    await store.run(store.ops.move_due())
    for task_id in waiting:
        task = await store.task(task_id)
        assert task.status is State.FAILED
        assert task.error is not None
        assert task.error.reason == "expired"
    assert await store.state(child) is State.CANCELLED


async def test_dependents_are_released_without_a_claim(store: World) -> None:
    """A parent may have more dependents than its end releases at once."""
    parent = await store.submit()
    children = await store.submit_all([new_task("child", depends_on=[parent]) for _ in range(700)])
    await store.claim_and_settle(await store.worker())
    while (await store.run(store.ops.move_due())).more:
        pass
    assert {await store.state(child) for child in (children[0], children[-1])} == {State.QUEUED}
    assert (await store.census())[State.QUEUED] == 700


async def test_a_flood_is_moved_in_batches(store: World) -> None:
    await flood(store)
    await store.advance(61)
    calls = 1
    while (due := await store.run(store.ops.move_due())).more:
        assert due.next_in is None
        calls += 1
    assert calls >= FLOOD // limits.BATCH
    assert await store.census() == {State.QUEUED: FLOOD}


async def test_moving_what_is_due_does_nothing_when_nothing_is(store: World) -> None:
    await store.submit()
    cursor = await store.run(store.ops.tail())
    due = await store.run(store.ops.move_due())
    assert (due.more, due.next_in) == (False, None)
    assert (await store.run(store.ops.events(cursor, 10))).events == []


async def test_an_urgent_task_overtakes_a_flood_that_was_due_before_it(store: World) -> None:
    await flood(store, priority="low")
    urgent = await store.submit(priority="critical", delay_seconds=90)
    await store.advance(91)
    worker = await store.worker()
    assert (await store.claim_one(worker)).task_id == urgent


async def test_levels_of_a_flood_are_claimed_in_order(store: World) -> None:
    for type in ("a", "b", "c"):
        for priority in ("high", "low", "medium"):
            await flood(store, type, 250, priority=priority)
    few = [await store.submit("b", priority=9, delay_seconds=60) for _ in range(3)]
    await store.advance(61)
    worker = await store.worker()
    claimed = await store.claim(worker, 40)
    assert [task.task_id for task in claimed[:3]] == few
    levels = [task.level for task in claimed[3:]]
    while more := await store.claim(worker, 500):
        levels += [task.level for task in more]
    assert levels == [8] * 750 + [5] * 750 + [2] * 750


async def test_a_flood_is_claimed_in_the_order_of_time(store: World) -> None:
    """The later a task is submitted, the earlier it is due; in two lanes by turns."""
    submitted = [
        new_task("a" if delay % 2 else "b", delay_seconds=delay) for delay in range(700, 0, -1)
    ]
    await store.submit_all(submitted)
    await store.advance(701)
    worker = await store.worker()
    first, second = await store.claim(worker, 300), await store.claim(worker, 300)
    expected = [task.task_id for task in reversed(submitted)][:600]
    assert [task.task_id for task in first + second] == expected


async def test_age_counts_among_due_tasks(store: World) -> None:
    """Low tasks that were due long ago count as high: before the medium ones that are due now."""
    await flood(store, priority="low")
    await store.advance(1_900)
    for priority, count in (("medium", 600), ("critical", 1)):
        tasks = [new_task("late", priority=priority, delay_seconds=5) for _ in range(count)]
        await store.submit_all(tasks)
    await store.advance(6)
    worker = await store.worker()
    claimed = await store.claim(worker, 300)
    assert [task.level for task in claimed] == [10] + [2] * 299


async def test_tasks_of_the_future_take_no_place_in_a_flood(store: World) -> None:
    await flood(store, count=600, priority="critical", run_at=None, delay_seconds=3_600)
    await flood(store, priority="low")
    await flood(store, priority="medium", run_at=None, delay_seconds=65)
    urgent = await store.submit("flood", priority="critical", delay_seconds=60)
    await store.advance(66)
    worker = await store.worker()
    claimed = await store.claim(worker, 40)
    assert claimed[0].task_id == urgent
    assert [task.level for task in claimed] == [10] + [5] * 39


async def test_a_flood_of_other_lanes_delays_nobody(store: World) -> None:
    await flood(store, priority="critical")
    await flood(store, priority="low", required_capabilities=["gpu"])
    mine = await store.submit("mine", priority="low", delay_seconds=60)
    later = await store.submit("mine", priority="low", delay_seconds=3_600)
    await store.advance(61)
    worker = await store.worker()
    grant = await store.ask(worker, types=frozenset({"mine"}))
    assert [task.task_id for task in grant.tasks] == [mine]
    grant = await store.ask(worker, types=frozenset({"mine"}))
    assert grant.tasks == []
    assert grant.next_due_in != 0, "it would ask again at once, for nothing"
    assert await store.state(later) is State.SCHEDULED


async def test_a_flood_of_limited_types_delays_nobody(store: World) -> None:
    await store.run(store.ops.limit("one", concurrency=1))
    await store.run(store.ops.limit("slow", rate=1))
    for type in ("one", "slow"):
        await flood(store, type, 600, priority="critical")
    low = await store.submit("low", priority="low", delay_seconds=60)
    await store.advance(61)
    worker = await store.worker()
    claimed = await store.claim(worker, 300)
    assert [task.type for task in claimed] == ["one", "slow", "low"]
    assert claimed[-1].task_id == low
    grant = await store.ask(worker, types=frozenset({"one"}))
    assert grant.tasks == []
    assert grant.next_due_in != 0, "it would ask again at once, for nothing"
    await store.settle(claimed[0])
    assert [task.type for task in await store.claim(worker, 1)] == ["one"]


async def test_a_flood_behind_an_open_circuit_delays_nobody(store: World) -> None:
    await store.run(store.ops.limit("flood", breaker=Breaker(1, 60.0, 600.0)))
    await store.submit("flood")
    worker = await store.worker()
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=3_600))
    await flood(store, count=600, priority="critical")
    low = await store.submit("low", priority="low", delay_seconds=60)
    await store.advance(61)
    assert [task.task_id for task in await store.claim(worker, 500)] == [low]


async def test_a_flood_takes_no_more_than_its_share_of_what_is_held_ahead(store: World) -> None:
    """What is limited is not held ahead: the slots are for it, and the rest is for others."""
    for type in ("a", "b", "c"):
        await store.run(store.ops.limit(type, concurrency=400))
        await flood(store, type, 200, priority="critical")
    await flood(store, "free", 5, priority="low")
    await store.advance(61)
    worker = await store.worker()
    claimed = await store.claim(worker, 200, ahead=2)
    assert [task.level for task in claimed] == [10] * 200 + [2] * 2


async def test_a_limited_type_gets_its_share_of_a_flood_in_order(store: World) -> None:
    """Its first tasks stand in several lanes and levels, between those of other types."""
    await store.run(store.ops.limit("few", concurrency=3))
    await flood(store, "few", 300, priority="low")
    await flood(store, "few", 300, priority="medium", queue="other")
    await flood(store, "many", 300, priority=7)
    first = await store.submit("few", priority=9, delay_seconds=60)
    await store.advance(61)
    worker = await store.worker()
    claimed = await store.claim(worker, 400)
    assert claimed[0].task_id == first
    assert [task.level for task in claimed] == [9] + [7] * 300 + [5] * 2


async def test_a_flood_loses_nothing_when_claims_and_moves_compete(store: World) -> None:
    await flood(store, count=900, priority="low")
    await flood(store, count=900, priority="high")
    await store.advance(61)
    workers = [await store.worker() for _ in range(2)]
    seen: list[str] = []
    for turn in range(100):
        await store.run(store.ops.move_due())
        claimed = await store.claim(workers[turn % 2], 300)
        seen += [task.task_id for task in claimed]
        if not claimed:
            break
    assert len(seen) == len(set(seen)) == 1_800


async def test_several_maintainers_move_every_task_once(store: World) -> None:
    await flood(store, count=900, priority="low")
    await flood(store, count=900, priority="high")
    await store.advance(61)
    processes = store.processes(3)

    async def move_all(backend: Backend) -> None:
        while (await backend.run(backend.ops.move_due())).more:
            pass

    await asyncio.gather(*map(move_all, processes))
    assert await store.census() == {State.QUEUED: 1_800}
    assert await store.depth() == 1_800
    moved = 0
    cursor: str | None = None
    while (page := await store.run(store.ops.events(cursor, 500))).events:
        moved += sum(event.verb == "due" for event in page.events)
        cursor = page.cursor
    assert moved == 1_800


async def test_a_clock_that_goes_back_moves_nothing_early(store: World) -> None:
    task_id = await store.submit(delay_seconds=30)
    await store.advance(-100)
    due = await store.run(store.ops.move_due())
    assert due.next_in is not None
    assert due.next_in > 100
    assert await store.state(task_id) is State.SCHEDULED
    await store.advance(140)
    await store.run(store.ops.move_due())
    assert await store.state(task_id) is State.QUEUED
