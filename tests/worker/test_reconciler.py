"""A worker and a store that are of different opinions about what the worker holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlane import Context, Fairlane
from fairlane.core.flow import Flow, Mode, Op
from fairlane.core.machine import COMPLETE
from fairlane.core.model import Verdict
from fairlane.core.outcomes import Released
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.worker import heartbeat
from fairlane.worker.reconciler import Reconciler
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, REMOTE, TRANSACTIONAL, World, opened
from tests.worker.kit import ended, happened, looked, seen, working

LEASE = 2.0


@pytest.fixture(params=[*KINDS, REMOTE])
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


class Forgetful:
    """Operations of a store that confirms ends of runs, and has lost them right after."""

    def __init__(self, ops: Any) -> None:
        self._ops = ops
        self.losing = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def settle(self, settlements: Sequence[Settlement], **options: Any) -> Op[list[Settled]]:
        if not self.losing:
            op: Op[list[Settled]] = self._ops.settle(settlements, **options)
            return op

        def confirmed() -> Flow[list[Settled]]:
            yield from ()
            return [Settled(Verdict.APPLIED, COMPLETE)] * len(settlements)

        return Op("settle", Mode.READ, confirmed)


async def test_tasks_whose_completion_the_store_has_lost_run_again(
    app: Fairlane, world: World
) -> None:
    runs: Counter[str] = Counter()
    ran = asyncio.Event()

    @app.task
    async def work(ctx: Context) -> int:
        runs[ctx.task_id] += 1
        if len(runs) == 10:
            ran.set()
        return ctx.attempt

    forgetful = Forgetful(world.backend.ops)
    world.backend.ops = forgetful
    ids = [await world.submit() for _ in range(10)]
    async with working(app, lease=LEASE):
        await happened(ran)
        forgetful.losing = False
        found = [await ended(app, task_id) for task_id in ids]
    for task in found:
        assert (task.status, task.result) == (State.COMPLETED, 2)
        # None of them had been reported as started: it costs no retry.
        assert [run.outcome for run in task.attempts] == ["returned", "completed"]
        assert (task.retry_count, task.returns) == (0, 1)
    assert set(runs.values()) == {2}


async def test_a_run_that_had_started_counts_as_lost(app: Fairlane, world: World) -> None:
    forgetful = Forgetful(world.backend.ops)
    world.backend.ops = forgetful

    @app.task
    async def work(ctx: Context) -> int:
        if ctx.attempt == 2:
            forgetful.losing = False
        ctx.progress(50)
        await looked(app, ctx.task_id, lambda task: task.started_at is not None)
        return ctx.attempt

    task_id = await world.submit()
    async with working(app, lease=LEASE):
        task = await ended(app, task_id)
    assert (task.status, task.result) == (State.COMPLETED, 2)
    assert [run.outcome for run in task.attempts] == ["lost", "completed"]
    assert (task.retry_count, task.returns) == (1, 0)


async def test_a_run_that_the_store_has_lost_stops(app: Fairlane, world: World) -> None:
    """Its claim was undone: the task is queued again, and may run elsewhere."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.task
    async def work(ctx: Context) -> int:
        if ctx.attempt > 1:
            return ctx.attempt
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return 0

    behind = world.behind
    task_id = await world.submit()
    async with working(app, lease=LEASE):
        await happened(begun)
        await behind.run(behind.ops.pause(paused=True))
        task = await behind.task(task_id)
        assert task.worker_id is not None
        settlement = Settlement(task_id, task.attempt, task.worker_id, Released(), task)
        await behind.run(behind.ops.settle([settlement]))
        await happened(stopped)
        await behind.run(behind.ops.pause(paused=False))
        done = await ended(app, task_id)
    assert (done.status, done.result) == (State.COMPLETED, 2)


async def test_a_healthy_worker_that_compares_all_the_time_loses_nothing(
    app: Fairlane, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _compare_all_the_time(app, world, monkeypatch, transacting=False)


@pytest.mark.parametrize("world", TRANSACTIONAL, indirect=True)
async def test_nor_does_one_whose_handlers_use_transactions(
    app: Fairlane, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _compare_all_the_time(app, world, monkeypatch, transacting=True)


async def _compare_all_the_time(
    app: Fairlane, world: World, monkeypatch: pytest.MonkeyPatch, *, transacting: bool
) -> None:
    monkeypatch.setattr(heartbeat, "HURRIED_SECONDS", 0.01)
    monkeypatch.setattr(Reconciler, "pending", property(lambda _: True))
    compared = 0
    compare = Reconciler._compare

    async def counting(self: Reconciler) -> Any:
        nonlocal compared
        found = await compare(self)
        compared += 1
        assert (found.unknown, found.missing) == ([], [])
        return found

    monkeypatch.setattr(Reconciler, "_compare", counting)

    @app.task
    async def work(ctx: Context) -> None:
        if transacting:
            async with ctx.transaction():
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.002)

    ids = await world.submit_all([new_task("work") for _ in range(300)])
    async with working(app, concurrency=5):
        for task_id in ids:
            await seen(app, task_id, State.COMPLETED)
    found = [await app.get(task_id) for task_id in ids]
    assert {task and task.attempt for task in found} == {1}
    assert compared > 3
