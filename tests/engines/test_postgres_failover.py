"""A standby takes the place of its primary, under load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import InvalidStoreURL, StoreReadOnly
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker, Verdict
from fairlane.core.submission import new_task
from fairlane.engines.postgres.address import Address
from tests.fixtures.servers import PostgresServer, postgres
from tests.fixtures.standby import Standby
from tests.fixtures.stores import get_all, settlement, verdicts_of


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, Standby]]:
    with postgres("newest") as primary, Standby(primary) as standby:
        yield primary, standby


def replicate_synchronously(primary: PostgresServer) -> None:
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")


def both(url: str, primary: PostgresServer, standby: Standby) -> str:
    """One URL with two hosts."""
    return url.replace(f"host={primary.folder}", f"host={standby.folder},{primary.folder}")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def caught_up(primary: PostgresServer, standby: Standby) -> bool:
    with psycopg.connect(primary.url) as connection:
        ((written,),) = connection.execute("SELECT pg_current_wal_lsn()").fetchall()
    with psycopg.connect(standby.url) as connection:
        rows = connection.execute("SELECT pg_last_wal_replay_lsn() >= %s", [written]).fetchall()
    return rows == [(True,)]


async def test_everything_goes_on_at_the_other_server(pair: tuple[PostgresServer, Standby]) -> None:
    primary, standby = pair
    replicate_synchronously(primary)
    single = primary.new_database()
    await until(lambda: caught_up(primary, standby))
    url = both(single, primary, standby)
    stored: list[str] = []
    stop = asyncio.Event()

    async def keep_submitting(backend: Backend) -> None:
        while not stop.is_set():
            (answer,) = await backend.run(backend.ops.submit([new_task("work")]))
            stored.append(answer.task_id)

    async with engines.open(url, patience=60.0) as backend:
        await backend.run(backend.ops.migrate())
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker, lease=600)))
        await asyncio.to_thread(backend.run_sync, backend.ops.workers())
        submitters = [asyncio.create_task(keep_submitting(backend)) for _ in range(4)]
        await until(lambda: len(stored) >= 50)
        wakeup = await backend.driver.listen()
        await asyncio.to_thread(primary.kill)
        before = len(stored)
        await asyncio.to_thread(standby.promote)
        with psycopg.connect(standby.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        await until(lambda: len(stored) >= before + 50)
        stop.set()
        await asyncio.gather(*submitters)
        # What was acknowledged is there, and can be done.
        assert all(task is not None for task in await get_all(backend, stored))
        (task,) = (await backend.run(backend.ops.claim(Ask(worker, new_id(), 1)))).tasks
        settled = await asyncio.to_thread(backend.run_sync, backend.ops.settle([settlement(task)]))
        assert verdicts_of(settled) == [Verdict.APPLIED]
        # Whoever waits is woken by the new server.
        async with engines.open(url, patience=60.0) as other:
            async with asyncio.timeout(60):
                while True:
                    waiting = asyncio.create_task(wakeup.wait(5))
                    await asyncio.sleep(0)
                    await other.run(other.ops.submit([new_task("work")]))
                    if await waiting:
                        break
        await wakeup.aclose()


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_a_standby_is_not_mistaken_for_a_primary(
    pair: tuple[PostgresServer, Standby], colour: str
) -> None:
    primary, standby = pair
    single = primary.new_database()
    async with engines.open(single) as backend:
        await backend.run(backend.ops.migrate())
    await until(lambda: caught_up(primary, standby))

    async def submit(backend: Backend) -> None:
        op = backend.ops.submit([new_task("work")])
        if colour == "async":
            await backend.run(op)
        else:
            await asyncio.to_thread(backend.run_sync, op)

    # Named first, it is passed over.
    async with engines.open(both(single, primary, standby), patience=10.0) as backend:
        await submit(backend)
    # Named alone, it is waited for until it is one.
    alone = single.replace(str(primary.folder), str(standby.folder))
    async with engines.open(alone, patience=0.5) as backend:
        with pytest.raises(StoreReadOnly, match="primary"):
            await submit(backend)
    async with engines.open(alone, patience=60.0) as backend:
        waiting = asyncio.create_task(submit(backend))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(standby.promote)
        await waiting


def test_addresses_with_several_hosts() -> None:
    address = Address("postgresql://me:s3cret@one:5432,two:5433/tasks")
    assert address.name == "PostgreSQL database tasks at one:5432,two:5433"
    assert address.url.endswith("?target_session_attrs=read-write")
    chosen = Address("postgresql://one,two/tasks?target_session_attrs=any")
    assert chosen.url_for_asyncpg.endswith("?target_session_attrs=any")
    assert Address("postgresql://one/tasks").url == "postgresql://one/tasks"
    with pytest.raises(InvalidStoreURL, match="5432"):
        Address("postgresql://one:x,two:5433/tasks")
