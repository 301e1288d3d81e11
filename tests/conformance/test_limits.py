"""Rates and concurrency hold across all workers together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.core.errors import InvalidLimit, WorkerGone
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Beat, TaskError, Verdict
from fairlane.core.outcomes import Failed, Released, TimedOut
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement


async def fill(store: World, type: str = "work", count: int = 50) -> None:
    await store.submit_all([new_task(type, {"n": n}) for n in range(count)])


async def test_concurrency_over_several_workers(store: World) -> None:
    await fill(store)
    await store.run(store.ops.limit("work", concurrency=3))
    first, second = await store.worker(), await store.worker()
    held = await store.claim(first, 2)
    assert len(held) == 2
    more = await store.claim(second, 10)
    assert len(more) == 1
    assert await store.claim(first, 10) == []
    await store.settle(held[0])
    assert len(await store.claim(second, 10)) == 1


async def test_concurrency_counts_what_was_claimed_before_the_limit(store: World) -> None:
    await fill(store)
    worker = await store.worker()
    held = await store.claim(worker, 5)
    await store.run(store.ops.limit("work", concurrency=4))
    assert await store.claim(worker, 5) == []
    await store.run(store.ops.settle([settlement(task) for task in held[:2]]))
    assert len(await store.claim(worker, 5)) == 1


async def test_a_cancelled_task_keeps_its_slot_until_its_worker_lets_go(store: World) -> None:
    await fill(store)
    await store.run(store.ops.limit("work", concurrency=1))
    worker = await store.worker()
    task = await store.claim_one(worker)
    await store.run(store.ops.cancel([task.task_id]))
    assert await store.claim(worker) == []
    assert await store.settle(task) == "stale"
    assert len(await store.claim(worker)) == 1


async def test_a_dead_worker_s_cancelled_task_frees_its_slot(store: World) -> None:
    await fill(store)
    await store.run(store.ops.limit("work", concurrency=1))
    dying, worker = await store.worker(lease=10), await store.worker(lease=1_000)
    task = await store.claim_one(dying)
    await store.run(store.ops.cancel([task.task_id]))
    await store.advance(11)
    assert await store.claim(worker) == []
    await store.reap()
    assert len(await store.claim(worker)) == 1


async def test_a_limit_of_one_type_leaves_others_alone(store: World) -> None:
    await fill(store, "limited")
    await fill(store, "free", 5)
    await store.run(store.ops.limit("limited", concurrency=2))
    claimed = await store.claim(await store.worker(), 20)
    assert [task.type for task in claimed] == ["limited"] * 2 + ["free"] * 5


async def test_a_limit_covers_all_lanes_of_its_type(store: World) -> None:
    for n in range(12):
        await store.submit("work", queue=f"q{n % 3}", priority=n % 4)
    await store.run(store.ops.limit("work", concurrency=5))
    claimed = await store.claim(await store.worker(), 20)
    assert len(claimed) == 5
    assert [task.level for task in claimed] == [3, 3, 3, 2, 2]


async def test_nothing_limited_is_held_ahead(store: World) -> None:
    await fill(store, "limited")
    await fill(store, "free")
    await store.run(store.ops.limit("limited", concurrency=40))
    claimed = await store.claim(await store.worker(), 3, ahead=10)
    assert sum(task.type == "limited" for task in claimed) == 3
    assert len(claimed) == 13


async def test_rate_starts_with_a_burst_and_goes_on_by_the_clock(store: World) -> None:
    await fill(store)
    await store.run(store.ops.limit("work", rate=4))
    worker = await store.worker()
    assert len(await store.claim(worker, 10)) == 4
    grant = await store.ask(worker)
    assert grant.tasks == []
    assert grant.next_due_in is not None
    assert 0 < grant.next_due_in <= 0.25
    await store.advance(0.5)
    assert len(await store.claim(worker)) == 2
    await store.advance(100)
    assert len(await store.claim(worker)) == 4


async def test_a_fractional_rate(store: World) -> None:
    await fill(store)
    await store.run(store.ops.limit("work", rate=0.1))
    worker = await store.worker()
    assert len(await store.claim(worker)) == 1
    await store.advance(9)
    assert await store.claim(worker) == []
    await store.advance(1.5)
    assert len(await store.claim(worker)) == 1


async def test_the_overall_rate(store: World) -> None:
    await fill(store, "a")
    await fill(store, "b")
    await store.run(store.ops.limit(None, rate=6))
    worker = await store.worker()
    assert len(await store.claim(worker, 10, ahead=100)) == 6
    assert await store.claim(worker) == []
    await store.advance(0.5)
    assert len(await store.claim(worker)) == 3


async def test_both_rates_at_once(store: World) -> None:
    await fill(store, "a")
    await store.submit_all([new_task("b", priority="low") for _ in range(10)])
    await store.run(store.ops.limit(None, rate=6))
    await store.run(store.ops.limit("a", rate=2))
    claimed = await store.claim(await store.worker(), 10)
    assert [task.type for task in claimed] == ["a"] * 2 + ["b"] * 4


async def test_a_retry_pays_again(store: World) -> None:
    await store.submit("work")
    await store.run(store.ops.limit("work", rate=1))
    worker = await store.worker()
    await store.settle(await store.claim_one(worker), Failed(TaskError("x"), after=0))
    assert await store.claim(worker) == []
    await store.advance(1)
    assert len(await store.claim(worker)) == 1


async def test_limits_change_at_run_time(store: World) -> None:
    await fill(store)
    worker = await store.worker()
    await store.run(store.ops.limit("work", rate=1, concurrency=2))
    assert len(await store.claim(worker)) == 1
    await store.run(store.ops.limit("work", rate=0))
    assert len(await store.claim(worker)) == 1
    await store.run(store.ops.limit("work", concurrency=0))
    assert len(await store.claim(worker, 20)) == 20


async def test_limits_hold_with_eight_claimers_at_once(store: World) -> None:
    await fill(store, "slots", 200)
    await fill(store, "rated", 200)
    await store.run(store.ops.limit("slots", concurrency=7))
    await store.run(store.ops.limit("rated", rate=5))
    workers = [await store.worker() for _ in range(8)]
    backends = store.processes(4)

    async def one(number: int) -> list[str]:
        backend = backends[number % 4]
        found = []
        for _ in range(5):
            grant = await backend.run(backend.ops.claim(Ask(workers[number], new_id(), 4)))
            found += [task.type for task in grant.tasks]
        return found

    began = asyncio.get_running_loop().time()
    claimed = [type for types in await asyncio.gather(*map(one, range(8))) for type in types]
    took = asyncio.get_running_loop().time() - began
    assert claimed.count("slots") == 7
    assert 5 <= claimed.count("rated") <= 5 + 5 * took + 1


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "ten", True, 1e9])
async def test_a_rate_that_makes_no_sense_is_refused(store: World, bad: object) -> None:
    with pytest.raises(InvalidLimit):
        await store.run(store.ops.limit("work", rate=bad))  # type: ignore[arg-type]
    assert (await store.run(store.ops.controls())).types == {}


@pytest.mark.parametrize("bad", [-1, 1.5, "ten", True, 10**9])
async def test_a_concurrency_that_makes_no_sense_is_refused(store: World, bad: object) -> None:
    with pytest.raises(InvalidLimit):
        await store.run(store.ops.limit("work", concurrency=bad))  # type: ignore[arg-type]
    assert (await store.run(store.ops.controls())).types == {}


async def test_nothing_can_be_set_for_what_is_no_name(store: World) -> None:
    for op in (
        store.ops.limit("no name", rate=1),
        store.ops.pause(True, type="\x00"),  # noqa: FBT003
        store.ops.pause(True, queue=""),  # noqa: FBT003
    ):
        with pytest.raises(InvalidLimit):
            await store.run(op)
    controls = await store.run(store.ops.controls())
    assert (controls.types, controls.paused_queues) == ({}, frozenset())


async def test_a_dead_worker_keeps_no_slot(store: World) -> None:
    """Not even that of a task which was cancelled before anybody took it from the dead."""
    await store.run(store.ops.limit("work", concurrency=1))
    task_id = await store.submit()
    dying = await store.worker(lease=10)
    await store.claim_one(dying)
    await store.advance(11)
    await store.behind.run(store.behind.ops.bury([dying]))
    await store.run(store.ops.cancel([task_id]))
    other = await store.submit()
    assert (await store.claim_one(await store.worker())).task_id == other


async def test_a_suspended_holder_is_counted_once(store: World) -> None:
    """It is taken for dead, wakes up, and reports: its slot is gone, and nobody else's is freed."""
    await store.run(store.ops.limit("work", concurrency=1))
    await store.submit_all([new_task("work", timeout_seconds=None) for _ in range(3)])
    suspended = await store.worker(lease=10)
    lost = await store.claim_one(suspended)
    await store.start(lost)
    await store.advance(11)
    await store.reap()
    heir = await store.worker(lease=10_000)
    (held,) = await store.claim(heir)
    assert held.task_id == lost.task_id
    assert await store.settle(lost) is Verdict.STALE
    with pytest.raises(WorkerGone):
        await store.run(store.ops.heartbeat(Beat(suspended)))
    assert await store.claim(heir) == []  # one is held, and one is the limit
    assert await store.settle(held) is Verdict.APPLIED
    assert len(await store.claim(heir)) == 1


async def test_a_run_that_timed_out_keeps_its_slot_once(store: World) -> None:
    """Its worker lives and may still be at it: the slot is free when it has let go, not before."""
    await store.run(store.ops.limit("work", concurrency=1))
    await store.submit_all([new_task("work", timeout_seconds=5, max_retries=9) for _ in range(2)])
    slow, other = await store.worker(lease=10_000), await store.worker(lease=10_000)
    late = await store.claim_one(slow)
    await store.start(late)
    await store.advance(6)
    assert await store.reap() == [Verdict.APPLIED]
    await store.advance(400)
    assert await store.claim(other) == []
    assert await store.settle(late) is Verdict.STALE
    (held,) = await store.claim(other)
    assert await store.settle(late) is Verdict.STALE  # once more: nothing left to free
    assert await store.claim(other) == []
    assert await store.settle(held) is Verdict.APPLIED


async def test_the_timeout_of_a_type_counts_for_tasks_that_name_none(store: World) -> None:
    """It counts for tasks that wait already, and is enforced."""
    ids = await store.submit_all(
        [
            new_task("work", max_retries=1),
            new_task("work", timeout_seconds=900, max_retries=1),
            new_task("work", timeout_seconds=None, max_retries=1),
            new_task("other", max_retries=1),
        ]
    )
    await store.run(store.ops.limit("work", timeout=40))
    assert (await store.run(store.ops.controls())).types["work"].timeout == 40.0
    worker = await store.worker(lease=10_000)
    grant = await store.ask(worker, request_id="first")
    tasks = {task.task_id: task for task in grant.tasks}
    assert [tasks[each].timeout for each in ids] == [40.0, 900.0, None, 600.0]
    again = await store.ask(worker, request_id="first")
    assert {task.task_id: task.timeout for task in again.tasks} == {
        task_id: task.timeout for task_id, task in tasks.items()
    }
    assert [(await store.task(each)).timeout_seconds for each in ids] == [40.0, 900.0, None, 600.0]
    for task in tasks.values():
        assert await store.start(task) is Verdict.APPLIED
    await store.advance(39)
    assert await store.reap() == []
    await store.advance(2)
    assert await store.reap() == [Verdict.APPLIED]
    late = await store.task(ids[0])
    assert (late.status, late.timeout_seconds) == (State.RETRYING, 60.0)
    assert late.error is not None
    assert "40 s" in late.error.message


async def test_a_retry_keeps_the_timeout_of_the_run_before(store: World) -> None:
    await store.run(store.ops.limit("work", timeout=40))
    task_id = await store.submit(max_retries=5)
    worker = await store.worker(lease=10_000)
    await store.settle(await store.claim_one(worker), TimedOut())
    await store.run(store.ops.limit("work", timeout=10))
    await store.advance(60)
    task = await store.claim_one(worker)
    assert task.timeout == 60.0, "it has grown, and is not cut again"
    await store.settle(task, Failed(TaskError("no", retriable=False)))
    await store.run(store.ops.replay([task_id]))
    task = await store.claim_one(worker)
    assert task.timeout == 10.0, "a replay starts over"
    await store.settle(task, Released(), None)
    await store.run(store.ops.limit("work", timeout=0))
    assert (await store.run(store.ops.controls())).types["work"].timeout == 0
    await store.submit()
    assert sorted([task.timeout or 0 for task in await store.claim(worker)]) == [10.0, 600.0]


async def test_the_other_limits_of_a_type_stay_when_its_timeout_is_set(store: World) -> None:
    await store.run(store.ops.limit("work", rate=2, concurrency=3))
    await store.run(store.ops.limit("work", timeout=40))
    await store.run(store.ops.limit("work", rate=1))
    rules = (await store.run(store.ops.controls())).types["work"]
    assert (rules.rate, rules.concurrency, rules.timeout) == (1.0, 3, 40.0)


@pytest.mark.parametrize("bad", [-1, 2_592_001, float("nan"), float("inf"), True, "40"], ids=repr)
async def test_a_timeout_that_makes_no_sense_is_refused(store: World, bad: Any) -> None:
    with pytest.raises(InvalidLimit):
        await store.run(store.ops.limit("work", timeout=bad))
    with pytest.raises(InvalidLimit):
        await store.run(store.ops.limit(None, timeout=40))
    assert (await store.run(store.ops.controls())).types == {}
