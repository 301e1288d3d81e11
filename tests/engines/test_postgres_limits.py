"""The limits of a session: how long it may keep its locks, and how long it may be silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Flow, Mode, Op
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.engines.postgres import driver_async, driver_sync
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.session import SESSION
from tests.conftest import Servers
from tests.fixtures.servers import PostgresServer, postgres

SINCE_17 = "transaction_timeout"
WANTED = {
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    SINCE_17: "40s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
PATIENCE = 30.0

Run = Any


def runner(backend: Backend, colour: str) -> Run:
    """How a backend performs an operation, in one of both colours."""

    async def run(op: Op[Any]) -> Any:
        if colour == "async":
            return await backend.run(op)
        return await asyncio.to_thread(backend.run_sync, op)

    return run


def settings_in_force() -> Flow[dict[str, str | None]]:
    rows = yield Query(
        "SELECT name, current_setting(name, true) FROM unnest($1::text[]) AS wanted (name)",
        (["application_name", *WANTED],),
    )
    return dict(rows)


# On a unix socket the settings for TCP are zero, whatever a session sets.
@pytest.fixture(scope="module", params=["oldest", "newest"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with postgres(request.param, tcp=True) as server:
        yield server


@pytest.mark.parametrize("colour", ["async", "sync"])
@pytest.mark.parametrize("mode", [Mode.READ, Mode.TRANSACTION])
async def test_a_worker_s_sessions_are_limited(
    server: PostgresServer, colour: str, mode: Mode
) -> None:
    url = server.new_database()
    async with engines.open(url) as backend:
        run = runner(backend, colour)
        await run(backend.ops.migrate())
        worker = new_id()
        backend.driver.serve_worker(worker, 30.0)
        await run(backend.ops.register(NewWorker(worker)))
        found = await run(Op("settings", mode, settings_in_force))
    known = WANTED if server.version >= (17,) else WANTED | {SINCE_17: None}
    assert found == {"application_name": f"fairlane {worker}", **known}


# -- a transaction that goes on for too long -------------------------------------------------------


@pytest.fixture(params=["async", "sync"])
async def hurried(
    request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Run, str]]:
    """A store whose sessions, of this colour, may have transactions of 300 ms."""
    server = servers.postgres("newest")
    assert server.version >= (17,), "only since PostgreSQL 17 there is such a limit"
    url = server.new_database()
    async with engines.open(url) as backend:
        await backend.run(backend.ops.migrate())
    short = SESSION.replace("'transaction_timeout', '40s'", "'transaction_timeout', '300ms'")
    assert short != SESSION
    for driver in (driver_async, driver_sync):
        monkeypatch.setattr(driver, "SESSION", short)
    async with engines.open(url, patience=0.0) as backend:
        yield runner(backend, request.param), url
    server.drop_database(url)


LOCK = Query("SELECT pg_advisory_xact_lock(1)")


def lock_and_stay_busy() -> Flow[None]:
    """No statement takes long, and the session is never idle."""
    yield LOCK
    while True:
        yield Query("SELECT pg_sleep(0.01)")


def lock() -> Flow[str]:
    yield LOCK
    return "has it"


async def test_a_transaction_ends_that_keeps_its_locks_for_too_long(
    hurried: tuple[Run, str],
) -> None:
    run, url = hurried
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreUnavailable, match="transaction timeout"):
            await run(Op("busy", Mode.TRANSACTION, lock_and_stay_busy))
        async with engines.open(url) as other:
            assert await other.run(Op("lock", Mode.TRANSACTION, lock)) == "has it"
        # And the process itself goes on, on another connection.
        assert await run(Op("lock", Mode.TRANSACTION, lock)) == "has it"


def take_long() -> Flow[str]:
    for _ in range(2):
        yield Query("SELECT pg_sleep(0.3)")
    return "done"


async def test_a_migration_takes_as_long_as_it_takes(hurried: tuple[Run, str]) -> None:
    run, _ = hurried
    assert await run(Op("migrate", Mode.SCHEMA, take_long)) == "done"
