"""streaQ: one process with a hundred tasks at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from streaq import Worker

from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()

worker = Worker(redis_url=url(), concurrency=100, anyio_kwargs={"use_uvloop": True})


async def handler(value: int) -> int:
    MARKS.made()
    return value


noop = worker.task(name="noop", ttl=3_600)(handler)


class OnStreaq:
    CONCURRENT = True

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(worker)

    async def submit(self, value: int) -> None:
        await noop.enqueue(value)

    async def submit_many(self, values: Sequence[int]) -> None:
        await worker.enqueue_many([noop.enqueue(value) for value in values])

    def workers(self) -> Sequence[Command]:
        return [module("streaq", "run", "bench.peers.streaq:worker")]

    async def finished(self) -> int:
        return keys.count(url(), "streaq:*:task:results:*")

    async def close(self) -> None:
        await self._stack.aclose()


def peer() -> Peer:
    return OnStreaq()
