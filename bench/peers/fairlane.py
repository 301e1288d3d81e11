"""Fairlane, with everything on: one worker process as it comes.

`threads`: its handler is a `def`. `two`: two worker processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, choice, module, url
from fairlane import Fairlane
from fairlane.core.filters import new_filter
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

app = Fairlane(url())
app.backend  # noqa: B018 (imports the engine, which is not to count as memory of the worker)
MARKS = Marks()


async def on_the_loop(value: int) -> int:
    MARKS.made()
    return value


def on_a_thread(value: int) -> int:
    MARKS.made()
    return value


THREADS = choice("one") == "threads"
noop = app.task(name="noop")(on_a_thread) if THREADS else app.task(name="noop")(on_the_loop)
FINISHED = new_filter(status="completed")


class OnFairlane:
    CONCURRENT = True

    async def open(self) -> None:
        await app.run(app.backend.ops.controls())

    async def submit(self, value: int) -> None:
        await noop.submit(value=value)

    async def submit_many(self, values: Sequence[int]) -> None:
        await app.submit_many([noop.prepare(value=value) for value in values])

    def submit_sync(self, value: int) -> None:
        noop.submit_sync(value=value)

    def workers(self) -> Sequence[Command]:
        command = module("fairlane", "worker", "--app", "bench.peers.fairlane:app")
        return [command] * (2 if choice("one") == "two" else 1)

    async def finished(self) -> int:
        return (await app.run(app.backend.ops.total(FINISHED))).count

    async def close(self) -> None:
        await app.aclose()


@asynccontextmanager
async def working_here() -> AsyncIterator[None]:
    """A worker in this process, beside whoever submits."""
    worker = Worker(app, Config())
    running = asyncio.create_task(worker.run(signals=False))
    try:
        yield
    finally:
        worker.stop()
        await running


def peer() -> Peer:
    return OnFairlane()
