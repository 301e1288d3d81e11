"""PgQueuer, which keeps no results: batch size and processes as chosen, `10x1` as it comes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries

from bench.loops import use_uvloop
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, choice, module, url

MARKS = Marks()
use_uvloop()


async def noop(job: Any) -> None:  # noqa: ARG001 (PgQueuer gives it)
    MARKS.made()


async def work(batch: int) -> None:
    """What its command does, which fails with the newest version of the library it is built on."""
    connection = await asyncpg.connect(url())
    manager = PgQueuer(AsyncpgDriver(connection))
    manager.entrypoint("noop")(noop)
    await manager.run(batch_size=batch)


class OnPgQueuer:
    CONCURRENT = True

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(url(), min_size=4, max_size=20)
        self._queries = Queries(AsyncpgPoolDriver(self._pool))
        await self._queries.install()
        self._submitted = 0

    async def submit(self, value: int) -> None:
        await self._queries.enqueue("noop", b"%d" % value)
        self._submitted += 1

    async def submit_many(self, values: Sequence[int]) -> None:
        payloads = [b"%d" % value for value in values]
        await self._queries.enqueue(["noop"] * len(values), payloads, [0] * len(values))
        self._submitted += len(values)

    def workers(self) -> Sequence[Command]:
        batch, processes = choice("10x1").split("x")
        return [module("bench.peers.pgqueuer", batch)] * int(processes)

    async def finished(self) -> int:
        waiting = await self._pool.fetchval("SELECT count(*) FROM pgqueuer")
        return self._submitted - int(waiting)

    async def close(self) -> None:
        await self._pool.close()


def peer() -> Peer:
    return OnPgQueuer()


if __name__ == "__main__":
    asyncio.run(work(int(sys.argv[1])))
