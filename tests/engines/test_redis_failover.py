"""A master, a replica and three Sentinels: work goes on, whatever becomes of the master."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from fairlane.core.states import State
from fairlane.engines.redis import driver_async
from tests.engines.redis_group import FAILOVER, Flavour, Load, drained, group, replicated, until
from tests.engines.redis_kit import counted, opened, operator, submitted
from tests.fixtures.counters import depths
from tests.fixtures.servers import RedisServer, SentinelServer
from tests.fixtures.stores import get_all


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as own:
        yield own


@pytest.mark.parametrize(
    ("flavour", "end"),
    [("redis", signal.SIGKILL), ("valkey", signal.SIGKILL), ("redis", signal.SIGSTOP)],
)
async def test_work_goes_on_with_the_promoted_replica(
    flavour: Flavour, end: signal.Signals, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGSTOP: as with a master that is cut off, nothing is closed and nothing refused."""
    monkeypatch.setattr(driver_async, "_QUIET_SECONDS", 0.5)
    servers = await asyncio.to_thread(group, stack, flavour)
    url = servers.url(socket_timeout=1.0)
    async with opened(url, FAILOVER) as backend, opened(url, FAILOVER) as waiting:
        await backend.run(backend.ops.migrate())
        wakeup = await waiting.driver.listen()
        before = Load(backend)
        await before.more(200)
        await before.end()
        await asyncio.to_thread(replicated, servers.master)

        under = Load(backend)
        await under.more(50)
        servers.master.signal(end)
        await under.more(200)  # after it, as everything before would have come at once
        await under.end()

        found = await get_all(backend, before.acknowledged)
        assert [task and task.status for task in found] == [State.QUEUED] * len(found)
        # Of the others, what had not been sent to the replica may be lost; nothing is half there.
        stored = sum((await counted(backend)).values())
        assert stored >= len(before.acknowledged) + 200
        assert sum((await backend.run(depths(backend.ops))).values()) == stored
        done = await drained(backend)
        assert len(done) == stored
        assert await counted(backend) == {State.COMPLETED: stored}

        while await wakeup.wait(0.5):
            pass
        await submitted(backend)
        assert await wakeup.wait(FAILOVER)
        await wakeup.aclose()
        with operator(servers.replica) as client:
            assert client.role()[0] == b"master"
            assert client.hlen("{fairlane}:tasks") > 0


async def test_a_failover_that_was_ordered(stack: ExitStack) -> None:
    """The old master lives on, as a replica."""
    servers = await asyncio.to_thread(group, stack, "valkey")
    async with opened(servers.url(), FAILOVER) as backend:
        await backend.run(backend.ops.migrate())
        load = Load(backend)
        await load.more(50)
        await asyncio.to_thread(replicated, servers.master)
        await asyncio.to_thread(until, partial(ordered, servers.sentinels[0]))
        await asyncio.to_thread(until, lambda: role_of(servers.replica) == "master")
        await asyncio.to_thread(until, lambda: role_of(servers.master) == "slave")
        await load.more(50)
        await load.end()
        stored = sum((await counted(backend)).values())
        assert len(await drained(backend)) == stored


def ordered(watching: SentinelServer) -> bool:
    """Orders a failover; it is refused for a while after servers have come or gone."""
    with Redis.from_url(watching.url) as client:
        try:
            client.execute_command("SENTINEL", "FAILOVER", SentinelServer.service)
        except ResponseError:
            return False
        return True


def role_of(server: RedisServer) -> str:
    with operator(server) as client:
        try:
            role: str = client.role()[0].decode()
        except RedisError:
            return "changing"  # it closes its connections
        return role
