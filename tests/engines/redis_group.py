"""Servers that follow and watch each other, and work for them to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from redis import Redis

from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Verdict
from fairlane.core.submission import new_task
from tests.engines.redis_kit import operator, registered, submitted
from tests.fixtures.servers import RedisServer, SentinelServer, redis, sentinel
from tests.fixtures.stores import settlement, verdicts_of

Flavour = Literal["redis", "valkey"]

FAILOVER = 60.0
"""Seconds in which it must be over: a few on an idle machine."""


@dataclass
class Group:
    """Servers that watch and follow each other."""

    master: RedisServer
    replica: RedisServer
    sentinels: list[SentinelServer]

    def url(self, login: str = "", **options: object) -> str:
        places = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        tail = "&".join(f"{name}={value}" for name, value in options.items())
        return f"redis+sentinel://{login}{places}/{SentinelServer.service}/0?{tail}"


Pair = tuple[RedisServer, RedisServer]


def pair(stack: ExitStack, flavour: Flavour) -> Pair:
    """A master and its replica."""
    settings = {"repl-diskless-sync-delay": "0"}
    master, replica = (
        stack.enter_context(redis(flavour, tcp=True, settings=settings)) for _ in range(2)
    )
    follow(replica, master)
    return master, replica


def group(stack: ExitStack, flavour: Flavour) -> Group:
    master, replica = pair(stack, flavour)
    watching = [stack.enter_context(sentinel(master, quorum=2)) for _ in range(3)]
    for one in watching:
        with Redis.from_url(one.url) as client:
            until(partial(knows_all, client))
    return Group(master, replica, watching)


def follow(replica: RedisServer, master: RedisServer) -> None:
    with operator(replica) as client:
        client.replicaof("127.0.0.1", master.port)
        until(lambda: client.info("replication")["master_link_status"] == "up")


def replicated(master: RedisServer) -> None:
    """Waits until all that was acknowledged so far has reached the replica."""
    with operator(master) as client:
        client.incr("fence")  # it waits for what it has written itself, and all before that
        assert client.wait(1, int(FAILOVER * 1000)) == 1


def knows_all(client: Any) -> bool:
    """Whether a Sentinel has found the replica and the other Sentinels."""
    known = client.sentinel_master(SentinelServer.service)
    return (known["num-slaves"], known["num-other-sentinels"]) == (1, 2)


def until(condition: Callable[[], bool]) -> None:
    """Servers say nowhere when they are done: they have to be asked."""
    deadline = time.monotonic() + FAILOVER
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def drained(backend: Backend) -> set[str]:
    """Does everything that is there to do; answers which."""
    worker, done = await registered(backend), set[str]()
    while True:
        grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), 100)))
        if not grant.tasks:
            return done
        verdicts = verdicts_of(
            await backend.run(backend.ops.settle([settlement(task) for task in grant.tasks]))
        )
        assert set(verdicts) == {Verdict.APPLIED}
        done |= {task.task_id for task in grant.tasks}


class Load:
    """Submits without a pause, from both sides, and remembers what was acknowledged."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._over = asyncio.Event()
        self.acknowledged: list[str] = []
        self._news = asyncio.Event()
        self._tasks = [asyncio.create_task(self._submit()) for _ in range(4)]
        self._tasks.append(asyncio.create_task(self._submit_sync()))
        for task in self._tasks:
            task.add_done_callback(lambda _: self._news.set())

    async def more(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        goal = len(self.acknowledged) + count
        async with asyncio.timeout(FAILOVER):
            while len(self.acknowledged) < goal:
                self._news.clear()
                await self._news.wait()
                for task in self._tasks:
                    if task.done():
                        await task  # it failed, and says why

    async def end(self) -> None:
        self._over.set()
        await asyncio.gather(*self._tasks)

    async def _submit(self) -> None:
        while not self._over.is_set():
            self._note(await submitted(self._backend))

    async def _submit_sync(self) -> None:
        while not self._over.is_set():
            submission = self._backend.ops.submit([new_task("work")])
            (accepted,) = await asyncio.to_thread(self._backend.run_sync, submission)
            self._note(accepted.task_id)

    def _note(self, task_id: str) -> None:
        self.acknowledged.append(task_id)
        self._news.set()
