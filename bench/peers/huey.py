"""Huey, which keeps results: one process of four threads on Redis, of one on SQLite.

On SQLite as it comes (every commit is synced), or without syncing: `nosync`.
"""

from __future__ import annotations

from collections.abc import Sequence

from huey import RedisHuey, SqliteHuey

from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, choice, module, url

MARKS = Marks()
ON_SQLITE = url().startswith("sqlite:")
SQLITE = {"fsync": False} if choice("as it comes") == "nosync" else {}

queue = (
    SqliteHuey("bench", filename=url().removeprefix("sqlite:///"), **SQLITE)
    if ON_SQLITE
    else RedisHuey("bench", url=url())
)


def handler(value: int) -> int:
    MARKS.made()
    return value


noop = queue.task(name="noop")(handler)


class OnHuey:
    CONCURRENT = False

    async def open(self) -> None:
        queue.pending_count()

    async def submit(self, value: int) -> None:
        noop(value)

    def workers(self) -> Sequence[Command]:
        threads = "1" if ON_SQLITE else "4"
        options = ("-k", "thread", "-w", threads, "--quiet")
        return [module("huey.bin.huey_consumer", "bench.peers.huey.queue", *options)]

    async def finished(self) -> int:
        results: int = queue.result_count()
        return results

    async def close(self) -> None:
        queue.storage.close()


def peer() -> Peer:
    return OnHuey()
