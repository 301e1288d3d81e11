"""A process that is stopped between two messages to PostgreSQL, with locks in its hands.

It is a proxy that stops: to the server that is the same, and every message can be the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.errors import FairlaneError
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewWorker, TaskError, Verdict
from fairlane.core.outcomes import Failed
from fairlane.core.settlement import reaped
from fairlane.core.submission import new_task
from tests.conftest import Servers
from tests.e2e.chaos.arena import FULL, until
from tests.fixtures.pgproxy import Proxy, proxied
from tests.fixtures.stores import settlement, verdicts_of

LEASE = 0.2
SOON = 8.0
"""Sooner than any time limit of the server: idle sessions end after ten seconds."""
BREAKER = Breaker(1_000, 600.0, 1.0)
"""It counts runs, and does not open."""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Backend]:
    async with engines.open(url, patience=2.0) as backend:
        yield backend


async def registered(backend: Backend, lease: float = 3_600.0) -> str:
    worker = NewWorker(new_id(), lease=lease)
    backend.driver.serve_worker(worker.worker_id, lease)
    return await backend.run(backend.ops.register(worker))


async def claim(backend: Backend, worker_id: str) -> list[Claimed]:
    return (await backend.run(backend.ops.claim(Ask(worker_id, new_id(), slots=1)))).tasks


async def claim_one(backend: Backend, worker_id: str) -> Claimed:
    (task,) = await claim(backend, worker_id)
    return task


async def fail(backend: Backend, task: Claimed) -> Verdict:
    report = settlement(task, Failed(TaskError("x")))
    (verdict,) = verdicts_of(await backend.run(backend.ops.settle([report])))
    return verdict


async def use_everything(backend: Backend) -> None:
    """Operations that take locks, and those that a worker performs all the time."""
    ops = backend.ops
    await backend.run(ops.limit("work", concurrency=1, rate=1000.0))
    await backend.run(ops.submit([new_task("work") for _ in range(3)]))
    await backend.run(ops.submit([new_task("work", idempotency_key="key")]))
    worker_id = await registered(backend)
    await claim(backend, worker_id)
    await backend.run(ops.pause(paused=True, type="work"))
    await backend.run(ops.pause(paused=False, type="work"))
    await backend.run(ops.move_due())
    await backend.run(ops.forget(worker_id))
    await backend.run(ops.bury([worker_id]))


async def test_nothing_is_prepared_inside_a_transaction(servers: Servers) -> None:
    """A session that waits for the rest of a statement is not idle: it would keep its locks.

    A process learns which statements an operation needs, for all connections that follow.
    """
    url = servers.postgres("newest").new_database()
    async with opened(url) as backend:
        await backend.run(backend.ops.migrate())
    async with proxied(url) as proxy, opened(proxy.url) as backend:
        for _ in range(2):  # the second time, keys and limits are known
            await use_everything(backend)
        proxy.cut()
        proxy.parsed_in_transaction = proxy.sent = 0
        await use_everything(backend)
        assert proxy.sent > 50
        assert proxy.parsed_in_transaction == 0


@asynccontextmanager
async def stopped_after(
    proxy: Proxy, messages: int, work: Coroutine[Any, Any, object]
) -> AsyncIterator[bool]:
    """Let a worker do something, and stop it after so many messages until the end of the block.

    Yields whether it came that far. If so, its lease has run out.
    """
    proxy.stop_after(messages)
    working = asyncio.create_task(work)
    reached = asyncio.create_task(proxy.until_stopped(SOON))
    await asyncio.wait([working, reached], return_when=asyncio.FIRST_COMPLETED)
    reached.cancel()
    try:
        if proxy.stopped:
            await asyncio.sleep(LEASE)
        yield proxy.stopped
    finally:
        working.cancel()
        proxy.cut()
        with suppress(FairlaneError, asyncio.CancelledError):
            await working


async def stop_claiming(proxy: Proxy, messages: int, url: str, *, warm: bool) -> bool:
    """Stop a worker in a claim. Returns whether it came so far."""
    async with opened(url) as heir, opened(proxy.url) as stopped:
        lost = await registered(stopped, lease=LEASE)
        if warm:
            await claim(stopped, lost)
        async with stopped_after(proxy, messages, claim(stopped, lost)) as reached:
            if reached:
                worker_id = await registered(heir)
                async with asyncio.timeout(SOON):
                    assert await heir.run(heir.ops.bury([lost])) == [lost], f"after {messages}"
                    await heir.run(heir.ops.pause(paused=True, type="work"))
                    await heir.run(heir.ops.pause(paused=False, type="work"))
                    assert await claim(heir, worker_id), f"nobody gets the type after {messages}"
                await heir.run(heir.ops.forget(worker_id))
            return reached


async def stop_settling(proxy: Proxy, messages: int, url: str) -> bool:
    """Stop a worker while it reports a failure, which locks the task and the circuit of its type.
    Returns whether it came so far."""
    async with opened(url) as heir, opened(proxy.url) as stopped:
        lost, worker_id = await registered(stopped, lease=LEASE), await registered(heir)
        held, other = await claim_one(stopped, lost), await claim_one(heir, worker_id)
        async with stopped_after(proxy, messages, fail(stopped, held)) as reached:
            if reached:
                async with asyncio.timeout(SOON):
                    assert await heir.run(heir.ops.bury([lost])) == [lost], f"after {messages}"
                    assert await fail(heir, other) is Verdict.APPLIED, f"after {messages}"
                    await heir.run(heir.ops.limit("work", breaker=BREAKER))
                    # Whoever reaps leaves out what is locked, and a session does not end at once.
                    while overdue := await heir.run(heir.ops.expired(500)):
                        await heir.run(heir.ops.settle(list(map(reaped, overdue)), reaping=True))
            return reached


@pytest.mark.timeout(1_800 if FULL else 120)
@pytest.mark.parametrize(
    ("version", "warm"), [("oldest", True), ("newest", False)], ids=["later claim", "first claim"]
)
async def test_a_worker_stopped_at_any_message_keeps_no_type_from_others(
    servers: Servers, version: Literal["oldest", "newest"], *, warm: bool
) -> None:
    url = servers.postgres(version).new_database()
    async with opened(url) as backend:
        await backend.run(backend.ops.migrate())
        await backend.run(backend.ops.limit("work", concurrency=10_000, rate=100_000.0))
        await backend.run(backend.ops.submit([new_task("work") for _ in range(900)]))
    messages = 0
    while messages < 400:
        async with proxied(url) as proxy:
            if not await stop_claiming(proxy, messages, url, warm=warm):
                break
        messages += 1 if warm or FULL else 7
    assert messages > 10, "the claim came through to its end"


@pytest.mark.timeout(1_800 if FULL else 120)
@pytest.mark.parametrize("version", ["oldest", "newest"])
async def test_a_worker_stopped_while_it_settles_keeps_no_circuit_from_others(
    servers: Servers, version: Literal["oldest", "newest"]
) -> None:
    url = servers.postgres(version).new_database()
    async with opened(url) as backend:
        await backend.run(backend.ops.migrate())
        await backend.run(backend.ops.limit("work", breaker=BREAKER))
        await backend.run(backend.ops.submit([new_task("work") for _ in range(400)]))
    messages = 0
    while messages < 400:
        async with proxied(url) as proxy:
            if not await stop_settling(proxy, messages, url):
                break
        messages += 1 if FULL else 3
    assert messages > 10, "the report came through to its end"


async def test_sessions_of_workers_that_live_are_left_alone(servers: Servers) -> None:
    url = servers.postgres("newest").new_database()
    async with opened(url) as backend, opened(url) as other:
        await backend.run(backend.ops.migrate())
        lost = await registered(backend, lease=LEASE)
        alive = await registered(other)
        await asyncio.sleep(LEASE)
        with psycopg.connect(url, autocommit=True) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"

            def sessions(worker_id: str) -> set[int]:
                rows = connection.execute(query, (f"fairlane {worker_id}",))
                return {pid for (pid,) in rows.fetchall()}

            before = sessions(alive)
            assert before
            assert sessions(lost)
            assert await other.run(other.ops.bury([lost, alive])) == [lost]
            assert sessions(alive) == before

            async def none_is_left() -> bool:
                return not sessions(lost)

            await until(none_is_left, "the sessions of the dead worker have ended")


async def test_without_the_right_to_end_sessions_workers_are_buried(servers: Servers) -> None:
    server = servers.postgres("newest")
    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC")
        connection.execute("DROP ROLE IF EXISTS limited")
        connection.execute("CREATE ROLE limited LOGIN")
        connection.execute("GRANT CREATE ON DATABASE " + connection.info.dbname + " TO limited")
    async with opened(url.replace("user=postgres", "user=limited")) as backend:
        await backend.run(backend.ops.migrate())
        lost = await registered(backend, lease=LEASE)
        await asyncio.sleep(LEASE)
        assert await backend.run(backend.ops.bury([lost])) == [lost]
