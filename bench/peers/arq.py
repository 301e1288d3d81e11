"""arq: one process with a hundred tasks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arq import create_pool, func
from arq.connections import RedisSettings

from bench.loops import use_uvloop
from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()


async def noop(context: dict[str, Any], value: int) -> int:  # noqa: ARG001 (arq gives it)
    MARKS.made()
    return value


use_uvloop()


class WorkerSettings:
    functions = (func(noop, name="noop"),)
    redis_settings = RedisSettings.from_dsn(url())
    max_jobs = 100


class OnArq:
    CONCURRENT = True

    async def open(self) -> None:
        self._pool = await create_pool(WorkerSettings.redis_settings)

    async def submit(self, value: int) -> None:
        await self._pool.enqueue_job("noop", value)

    def workers(self) -> Sequence[Command]:
        return [module("arq", "bench.peers.arq.WorkerSettings")]

    async def finished(self) -> int:
        return keys.count(url(), "arq:result:*")

    async def close(self) -> None:
        await self._pool.aclose()


def peer() -> Peer:
    return OnArq()
