"""Maintenance: done by one among several, on the second look."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane import State, maintenance
from fairlane.core.errors import StoreUnavailable
from fairlane.core.model import Due, WorkerStatus
from fairlane.core.outcomes import Completed
from fairlane.core.retention import Pruned
from fairlane.maintenance import Maintenance
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE


async def test_one_is_elected_among_several(world: World) -> None:
    candidates = [world.keeper(f"candidate-{n}") for n in range(3)]
    answers = [await each._elected() for each in candidates]
    assert answers == [True, False, False]
    assert await candidates[0]._elected()
    await world.advance(maintenance.TERM_ROUNDS * maintenance.REAP_SECONDS + 1)
    assert await candidates[2]._elected()
    assert not await candidates[0]._elected()


async def test_dead_workers_are_reaped_on_the_second_look(world: World) -> None:
    worker_id = await world.worker(lease=30.0)
    task_id = await world.submit(max_retries=1)
    await world.start(await world.claim_one(worker_id))
    await world.keeper("an earlier one").round()
    await world.advance(60)
    keeper = world.keeper()
    await keeper.round()
    assert await world.state(task_id) is State.EXECUTING
    await keeper.round()
    task = await world.task(task_id)
    assert (task.status, [each.outcome for each in task.attempts]) == (State.QUEUED, ["lost"])
    (worker,) = await world.run(world.ops.workers())
    assert worker.status is WorkerStatus.DEAD


async def test_a_worker_that_speaks_up_between_two_looks_lives(world: World) -> None:
    worker_id = await world.worker(lease=30.0)
    keeper = world.keeper()
    await keeper.round()
    await world.advance(60)
    await keeper.round()
    await world.claim(worker_id)
    await keeper.round()
    (worker,) = await world.run(world.ops.workers())
    assert worker.status is WorkerStatus.ACTIVE


async def test_a_look_after_a_pause_of_one_s_own_does_not_count(memory: World) -> None:
    await memory.worker(lease=30.0)
    keeper = memory.keeper()
    await keeper.round()
    await memory.advance(60)
    await keeper.round()
    await memory.advance(1000)  # suspended
    await keeper.round()
    (worker,) = await memory.run(memory.ops.workers())
    assert worker.status is WorkerStatus.ACTIVE
    await memory.advance(4)
    await keeper.round()
    (worker,) = await memory.run(memory.ops.workers())
    assert worker.status is WorkerStatus.DEAD


async def test_due_tasks_move_while_nobody_claims(world: World) -> None:
    """One of two maintainers does it; the other one goes on when the first is gone."""
    for name in ("one", "two"):
        task_id = await world.submit(delay_seconds=60)
        await world.advance(61)  # the term of the first one is over
        keeping = asyncio.create_task(Maintenance(world.backend, name, pace=0.1).run())
        async with asyncio.timeout(PATIENCE):
            while await world.state(task_id) is not State.QUEUED:  # noqa: ASYNC110 (a store's state)
                await asyncio.sleep(0.01)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_flood_of_due_tasks_keeps_nothing_else_waiting(memory: World) -> None:
    now, said = 0.0, list[str]()

    async def slow(op: Any) -> Any:
        nonlocal now
        said.append(op.name)
        now += 0.2
        return Due(more=True)

    memory.backend.run = slow
    keeper = Maintenance(memory.backend, "one", clock=lambda: now, pace=1.0)
    await keeper._move_due(now + 1.0)
    assert said == ["move_due"] * 5


async def test_runs_past_their_time_limit_are_ended(world: World) -> None:
    worker_id = await world.worker(lease=3600.0)
    task_id = await world.submit(timeout_seconds=10, max_retries=0)
    await world.start(await world.claim_one(worker_id))
    await world.keeper().round()
    await world.advance(300)
    await world.keeper("another").round()
    task = await world.task(task_id)
    assert task.error is not None
    assert (task.status, task.error.reason) == (State.DEAD_LETTER, "timeout")


async def test_what_ended_long_ago_is_pruned_and_counters_are_sampled(world: World) -> None:
    worker_id = await world.worker(lease=86_400.0)
    task_id = await world.submit()
    await world.claim_and_settle(worker_id, Completed(b"1"))
    await world.advance(25 * 3600)
    await world.keeper().round()
    assert await world.run(world.ops.get([task_id])) == [None]
    assert len(await world.run(world.ops.samples(0, 10))) == 1


async def test_much_to_prune_keeps_nothing_else_waiting(memory: World) -> None:
    now, said = 0.0, list[str]()
    left = 10
    run = memory.backend.run

    async def slow(op: Any) -> Any:
        nonlocal now, left
        said.append(op.name)
        if op.name != "prune":
            return await run(op)
        now, left = now + 0.3, left - 1
        return Pruned(1_000, more=left > 0)

    memory.backend.run = slow
    keeper = Maintenance(memory.backend, "one", clock=lambda: now, pace=1.0)
    while left:
        said.clear()
        await keeper.round()
        assert "workers" in said
        assert 1 <= said.count("prune") <= 2
    said.clear()
    await keeper.round()
    assert "prune" not in said  # until it is time again


async def test_trouble_does_not_end_it(memory: World, caplog: pytest.LogCaptureFixture) -> None:
    troubles: list[Exception] = [StoreUnavailable("away"), ZeroDivisionError("a bug")]
    sampled = asyncio.Event()
    run = memory.backend.run

    async def troubled(op: Any) -> Any:
        if op.name == "elect" and troubles:
            raise troubles.pop()
        if op.name == "sample":
            sampled.set()
        return await run(op)

    memory.backend.run = troubled
    keeper = Maintenance(memory.backend, "one", pace=0.01)
    keeping = asyncio.create_task(keeper.run())
    async with asyncio.timeout(PATIENCE):
        await sampled.wait()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert "Maintenance waits for the store: away" in caplog.text
    assert "Maintenance failed" in caplog.text


@pytest.mark.parametrize(("lease", "pace"), [(0.1, 0.1), (6.0, 0.5), (30.0, 2.5), (86_400.0, 2.5)])
def test_who_would_be_dead_soon_looks_often(lease: float, pace: float) -> None:
    assert maintenance.pace_of(lease) == pace
