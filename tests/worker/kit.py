"""Applications on a test's store, and workers that run them for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fairlane import Fairlane, Task
from fairlane.core.states import State
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.fixtures.stores import World

PATIENCE = 30.0
"""How long to wait for what has to come: no test depends on how fast it does."""


def application(world: World) -> Fairlane:
    """An application on the world's own backend, which memory cannot do without."""
    app = Fairlane(world.url)
    app._connection.adopt(world.backend)
    return app


@asynccontextmanager
async def working(app: Fairlane, **config: Any) -> AsyncIterator[Worker]:
    """A worker, stopped at the end."""
    settings = {"poll_interval": 0.05, "maintenance": False, "grace": 5.0} | config
    worker = Worker(app, Config(**settings))
    run = asyncio.create_task(worker.run(signals=False))
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(PATIENCE):
            await run


async def ended(app: Fairlane, task_id: str) -> Task:
    """The task once it has ended."""
    async with asyncio.timeout(PATIENCE):
        task = await app.ended(task_id)
    assert task is not None
    return task


async def seen(app: Fairlane, task_id: str, *states: State) -> Task:
    """The task once it is in one of these states."""
    return await looked(app, task_id, lambda task: task.status in states)


async def looked(app: Fairlane, task_id: str, wanted: Callable[[Task], bool]) -> Task:
    """The task once it is as wanted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task = await app.get(task_id)
            assert task is not None
            if wanted(task):
                return task
            await asyncio.sleep(0.01)


async def happened(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await event.wait()
