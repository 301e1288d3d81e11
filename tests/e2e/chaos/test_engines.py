"""C4, C7: the engine itself is killed, again and again, while everybody works."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.e2e.chaos.arena import FULL, LEASE, Arena
from tests.e2e.history.terms import Terms
from tests.fixtures.process import Server
from tests.fixtures.servers import postgres, redis
from tests.fixtures.serving import ServerProcess

RATE = 100.0 if FULL else 40.0
RUNS_BETWEEN = 1_000 if FULL else 20

over_http = pytest.mark.parametrize("remote", [False, True], ids=["direct", "over-http"])


@asynccontextmanager
async def at_work(url: str, folder: Path, *, remote: bool) -> AsyncIterator[Arena]:
    """Two workers and a load; at the end nothing that was accepted is lost.

    `remote`: the workers know a server in place of the engine.
    """
    async with AsyncExitStack() as stack:
        address = stack.enter_context(ServerProcess(url, folder)).address if remote else None
        arena = await stack.enter_async_context(Arena(url, folder, address))
        await arena.ready(arena.begin(), arena.begin())
        async with arena.client.load(RATE, "on-loop", "on-thread"):
            await arena.ended(RUNS_BETWEEN)
            yield arena
        await arena.drained()
        await arena.judged(Terms(lease=LEASE))


async def restarted(arena: Arena, server: Server, end: Callable[[], None]) -> None:
    """Ended and started again; everybody goes on by himself, and soon."""
    await asyncio.to_thread(end)
    await asyncio.to_thread(server.start)
    await arena.healed()
    await arena.ended(RUNS_BETWEEN)


@over_http
@pytest.mark.timeout(3_600 if FULL else 120)
async def test_redis_is_killed(remote: bool, tmp_path: Path) -> None:
    with redis(appendonly=True, settings={"appendfsync": "always"}) as server:
        async with at_work(server.url, tmp_path, remote=remote) as arena:
            for _ in range(20 if FULL else 3):
                await restarted(arena, server, server.kill)


def kill_a_session(url: str) -> None:
    """One that serves a client; the others are ended by the postmaster, which starts all over."""
    with suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        ((pid,),) = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1"
        ).fetchall()
        os.kill(pid, signal.SIGKILL)


@over_http
@pytest.mark.timeout(3_600 if FULL else 120)
async def test_postgres_is_killed(remote: bool, tmp_path: Path) -> None:
    """Ended at once, killed as a whole, or one of its sessions is."""
    with postgres(settings={}) as durable:  # its own defaults: what is committed is on disk
        url = durable.new_database()
        async with at_work(url, tmp_path, remote=remote) as arena:
            for _ in range(5 if FULL else 2):
                await restarted(arena, durable, durable.abort)
            for _ in range(10 if FULL else 1):
                await restarted(arena, durable, durable.kill)
                kill_a_session(url)
                await arena.healed()
                await arena.ended(RUNS_BETWEEN)
