"""SAQ on Redis and on PostgreSQL: one process with twenty tasks at once.

Results stand in the jobs themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saq import Queue

from bench.loops import use_uvloop
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()
use_uvloop()


async def noop(context: dict[str, Any], *, value: int) -> int:  # noqa: ARG001 (SAQ gives it)
    MARKS.made()
    return value


def _queue() -> Any:
    if url().startswith("postgres"):
        return Queue.from_url(url())
    from redis.asyncio import Redis  # noqa: PLC0415 (PostgreSQL needs none)
    from saq.queue.redis import RedisQueue  # noqa: PLC0415

    return RedisQueue(Redis.from_url(url()))


def settings() -> dict[str, Any]:
    """For its command, which makes one in each process."""
    return {"queue": _queue(), "functions": [("noop", noop)], "concurrency": 20}


class OnSAQ:
    CONCURRENT = True

    async def open(self) -> None:
        self._queue = _queue()
        await self._queue.connect()
        self._submitted = 0

    async def submit(self, value: int) -> None:
        # An hour instead of ten minutes, so that no result is gone before it is counted.
        await self._queue.enqueue("noop", value=value, ttl=3_600)
        self._submitted += 1

    def workers(self) -> Sequence[Command]:
        return [module("saq", "bench.peers.saq.settings", "--quiet")]

    async def finished(self) -> int:
        waiting: int = await self._queue.count("incomplete")
        return self._submitted - waiting

    async def close(self) -> None:
        await self._queue.disconnect()


def peer() -> Peer:
    return OnSAQ()
