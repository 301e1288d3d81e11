"""Hints that there is work, within a process and across processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairlane.core.backend import Backend
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

PATIENCE = 10.0


@pytest.mark.parametrize("process", ["same", "other"])
async def test_a_submission_wakes_a_waiter(store: World, process: str) -> None:
    other: Backend = store.backend if process == "same" else store.processes(1)[0]
    wakeup = await store.backend.driver.listen()
    try:
        waiting = asyncio.create_task(wakeup.wait(PATIENCE))
        await asyncio.sleep(0)
        await other.run(other.ops.submit([new_task("work")]))
        assert await waiting
    finally:
        await wakeup.aclose()


async def test_nothing_happens_nobody_wakes(store: World) -> None:
    wakeup = await store.backend.driver.listen()
    try:
        while await wakeup.wait(0.05):
            pass  # what opening the store has stirred up
        worker = await store.worker()
        while await wakeup.wait(0.05):
            pass
        for _ in range(3):
            await store.ask(worker)
        assert not await wakeup.wait(0.1)
    finally:
        await wakeup.aclose()


async def test_what_makes_tasks_ready_wakes(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit(max_retries=0)

    async def release() -> None:
        await store.claim_and_settle(worker, Failed(TaskError("x")))

    async def replay() -> None:
        await store.run(store.ops.replay([task_id]))

    async def resume() -> None:
        await store.run(store.ops.pause(False))  # noqa: FBT003

    async def make_room() -> None:
        """Whoever waits for a slot of a limited type need not wait for the next look."""
        assert await store.settle(task) == "applied"

    async def make_room_late() -> None:
        """The slot of a cancelled task is free once its worker has let go."""
        await store.run(store.ops.cancel([cancelled.task_id]))
        while await wakeup.wait(0.05):
            pass
        assert await store.settle(cancelled) == "stale"

    await release()
    await store.run(store.ops.limit("narrow", concurrency=2))
    await store.submit_all([new_task("narrow") for _ in range(3)])
    task, cancelled = await store.claim(worker, types=frozenset({"narrow"}))
    wakeup = await store.backend.driver.listen()
    deeds: list[Callable[[], Awaitable[None]]] = [replay, resume, make_room, make_room_late]
    try:
        for deed in deeds:
            while await wakeup.wait(0.05):
                pass
            waiting = asyncio.create_task(wakeup.wait(PATIENCE))
            await asyncio.sleep(0)
            await deed()
            assert await waiting, deed.__name__
    finally:
        await wakeup.aclose()
