"""Sentinels: who is asked, who is believed, and what is said when nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from fairlane.core.errors import AccessDenied, StoreReadOnly, StoreUnavailable, StoreUnusable
from tests.engines.redis_fakes import Fake
from tests.engines.redis_group import FAILOVER, Load, Pair, drained, follow, pair, replicated
from tests.engines.redis_kit import PATIENT, counted, opened, operator, submitted
from tests.fixtures.certificates import certificates
from tests.fixtures.servers import RedisServer, redis, sentinel


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as own:
        yield own


class Told:
    """Sentinels that name whichever server they are told to name."""

    def __init__(self, *named: RedisServer | None) -> None:
        self.named = list(named)
        self._fakes = [Fake(partial(self._answer, n)) for n in range(len(named))]

    async def __aenter__(self) -> Self:
        for fake in self._fakes:
            await fake.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for fake in self._fakes:
            await fake.__aexit__()

    def url(self, login: str = "") -> str:
        return f"redis+sentinel://{login}{','.join(fake.place for fake in self._fakes)}/mymaster"

    def _answer(self, n: int) -> bytes:
        named = self.named[n]
        if named is None:
            return b"*-1"
        port = str(named.port).encode()
        return b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s" % (len(port), port)


@pytest.fixture(params=["redis", "valkey"])
def servers(request: pytest.FixtureRequest, stack: ExitStack) -> Pair:
    return pair(stack, request.param)


async def test_a_replica_that_was_promoted_by_hand(servers: Pair) -> None:
    """The old master is demoted under open connections, which stay open."""
    old, new = servers
    async with Told(old) as sentinels, opened(sentinels.url(), FAILOVER) as backend:
        await backend.run(backend.ops.migrate())
        await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        load = Load(backend)
        wakeup = await backend.driver.listen()
        await load.more(50)
        await asyncio.to_thread(replicated, old)
        await asyncio.to_thread(swap, old, new)
        sentinels.named = [new]
        await load.more(50)
        await load.end()
        with operator(new) as client:
            stored = client.hlen("{fairlane}:tasks")
        assert sum((await counted(backend)).values()) == stored
        assert len(await drained(backend)) == stored
        # Messages go from a master to its replicas, so the listener need not have noticed.
        while await wakeup.wait(0.2):
            pass
        await submitted(backend)
        assert await wakeup.wait(PATIENT)
        await wakeup.aclose()


def swap(old: RedisServer, new: RedisServer) -> None:
    with operator(new) as client:
        client.replicaof("NO", "ONE")
    follow(old, new)


async def test_a_sentinel_that_is_behind(servers: Pair) -> None:
    """It goes on naming what is a replica by now: the next one is asked."""
    master, replica = servers
    async with Told(replica, None, master) as sentinels:
        async with opened(sentinels.url(), PATIENT) as backend:
            await backend.run(backend.ops.migrate())
            await submitted(backend)
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        sentinels.named = [replica] * 3
        async with opened(sentinels.url()) as backend:
            with pytest.raises(StoreReadOnly, match=str(replica.port)):
                await submitted(backend)
            with pytest.raises(StoreReadOnly, match=str(replica.port)):
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())


async def test_a_service_that_nobody_knows(servers: Pair) -> None:
    async with Told(None, None) as sentinels, opened(sentinels.url(), PATIENT) as backend:
        with pytest.raises(StoreUnusable, match="mymaster"):
            await backend.run(backend.ops.controls())
        with pytest.raises(StoreUnusable, match="mymaster"):
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())


async def test_no_sentinel_at_all() -> None:
    async with opened("redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster") as backend:
        for said in (r"127\.0\.0\.1:1", r"127\.0\.0\.1:2"):
            with pytest.raises(StoreUnavailable, match=said):
                await backend.run(backend.ops.controls())
            with pytest.raises(StoreUnavailable, match=said):
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        wakeup = await backend.driver.listen()
        assert not await wakeup.wait(0.1)
        await wakeup.aclose()


async def test_sentinels_are_not_needed_for_what_stands(servers: Pair) -> None:
    master, _ = servers
    async with Told(master) as sentinels, opened(sentinels.url()) as backend:
        await backend.run(backend.ops.migrate())
        await sentinels.__aexit__()
        await submitted(backend)


async def test_a_server_that_is_no_sentinel(servers: Pair) -> None:
    master, _ = servers
    async with opened(f"redis+sentinel://127.0.0.1:{master.port}/mymaster", PATIENT) as backend:
        with pytest.raises(StoreUnusable, match="redis://"):
            await backend.run(backend.ops.controls())


async def test_users_of_the_service(servers: Pair) -> None:
    """The one in the URL is the server's; it need not have the right to ask for the role."""
    master, _ = servers
    with operator(master) as client:
        client.execute_command(
            "ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all", "-role"
        )
    async with Told(master) as sentinels:
        async with opened(sentinels.url("app:right@")) as backend:
            await backend.run(backend.ops.migrate())
            await submitted(backend)
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        async with opened(sentinels.url("app:wrong@"), PATIENT) as backend:
            with pytest.raises(AccessDenied, match="password"):
                await backend.run(backend.ops.controls())
            with pytest.raises(AccessDenied, match="password"):
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())


async def test_what_a_failover_may_undo_is_told(servers: Pair) -> None:
    master, _ = servers
    with operator(master) as client:
        client.config_set("appendonly", "yes")
        client.config_set("appendfsync", "always")
    async with Told(master) as sentinels, opened(sentinels.url()) as backend:
        warnings = (await backend.driver.durability()).warnings
        assert len(warnings) == 2
        assert "failover" in warnings[0]
        assert "min-replicas-to-write" in warnings[1]
        with operator(master) as client:
            client.config_set("min-replicas-to-write", 1)
        assert len((await backend.driver.durability()).warnings) == 1


# -- Sentinels of their own kind -------------------------------------------------------------------


async def test_sentinels_with_a_password(stack: ExitStack) -> None:
    master = stack.enter_context(redis("redis", tcp=True))
    guarded = ["user default off", "user guest on >right ~* &* +@all"]
    watching = sentinel(master, settings=guarded)
    watching.login = "guest:right@"
    stack.enter_context(watching)
    place = f"127.0.0.1:{watching.port}/mymaster"
    right = "sentinel_username=guest&sentinel_password=right"
    async with opened(f"redis+sentinel://{place}?{right}") as backend:
        await backend.run(backend.ops.migrate())
    for login in ("", f"{right}wrong"):
        async with opened(f"redis+sentinel://{place}?{login}", PATIENT) as backend:
            with pytest.raises(AccessDenied, match="Sentinel"):
                await backend.run(backend.ops.version())


async def test_everything_over_tls(stack: ExitStack, tmp_path: Path) -> None:
    ours = certificates(tmp_path)
    master = stack.enter_context(redis("redis", tls=ours))
    watching = stack.enter_context(sentinel(master, tls=ours))
    url = f"rediss+sentinel://127.0.0.1:{watching.tls_port}/mymaster"
    async with opened(f"{url}?ssl_ca_certs={ours.authority}", PATIENT) as backend:
        await backend.run(backend.ops.migrate())
        await submitted(backend)
        await asyncio.to_thread(backend.run_sync, backend.ops.controls())
    async with opened(url, PATIENT) as backend:
        with pytest.raises(StoreUnusable, match=r"Sentinel .* certificate"):
            await backend.run(backend.ops.version())
