"""A caller's own connection to a SQLite file, and transactions that a handler shares."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlane import engines
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    IdempotencyConflict,
    InvalidConnection,
    SchemaMissing,
    StoreBusy,
    TransactionTooLong,
)
from fairlane.core.model import NewWorker
from fairlane.core.submission import new_task
from fairlane.engines.sqlite.lock import FileLock
from tests.fixtures.counters import depths, tallies


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[Backend]:
    backend = engines.open(f"sqlite:///{tmp_path}/tasks.db", patience=0.3)
    await backend.run(backend.ops.migrate())
    yield backend
    await backend.driver.aclose()


@pytest.fixture
def theirs(tmp_path: Path, backend: Backend) -> Iterator[sqlite3.Connection]:
    """An application's connection to the same file, with a table of its own."""
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as connection:
        connection.execute("CREATE TABLE orders (name TEXT)")
        yield connection


async def depth(backend: Backend) -> int:
    return sum((await backend.run(depths(backend.ops))).values())


async def count(backend: Backend) -> int:
    return sum(tally.times for tally in await backend.run(tallies(backend.ops)))


@pytest.mark.parametrize("isolation_level", ["", None, "IMMEDIATE"])
async def test_a_task_exists_if_the_caller_commits(
    backend: Backend, theirs: sqlite3.Connection, isolation_level: Any
) -> None:
    theirs.isolation_level = isolation_level
    joined = backend.driver.join(theirs)
    for settle, expected in ((theirs.rollback, (0, 0)), (theirs.commit, (1, 1))):
        if isolation_level is None:
            theirs.execute("BEGIN")
        theirs.execute("INSERT INTO orders VALUES ('book')")
        (accepted,) = joined.run_sync(backend.ops.submit([new_task("ship")]))
        assert joined.run_sync(backend.ops.get([accepted.task_id])) != [None]
        assert await depth(backend) == 0
        settle()
        (orders,) = theirs.execute("SELECT count(*) FROM orders").fetchone()
        assert (orders, await depth(backend)) == expected


async def test_a_write_begins_a_transaction_and_a_read_does_not(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    joined = backend.driver.join(theirs)
    begun = []
    for op in (tallies(backend.ops), backend.ops.submit([new_task("ship")])):
        await joined.run(op)
        begun.append(theirs.in_transaction)
    assert begun == [False, True]
    theirs.rollback()
    assert await depth(backend) == 0


async def test_a_failed_operation_undoes_only_itself(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    await backend.run(backend.ops.submit([new_task("ship", {"n": 0}, idempotency_key="k")]))
    joined = backend.driver.join(theirs)
    conflict = backend.ops.submit(
        [new_task("new-lane"), new_task("ship", {"n": 1}, idempotency_key="k")]
    )
    with pytest.raises(IdempotencyConflict):
        joined.run_sync(conflict)
    assert not theirs.in_transaction
    theirs.execute("INSERT INTO orders VALUES ('book')")
    joined.run_sync(backend.ops.submit([new_task("ship")]))
    with pytest.raises(IdempotencyConflict):
        joined.run_sync(conflict)
    theirs.commit()
    assert theirs.execute("SELECT * FROM orders").fetchall() == [("book",)]
    assert await depth(backend) == 2
    assert await count(backend) == 2


async def test_lanes_that_were_rolled_back_are_not_remembered(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    joined = backend.driver.join(theirs)
    joined.run_sync(backend.ops.submit([new_task("gone")]))
    theirs.rollback()
    # Takes the number, and brings the catalogue to the version, that the other one had.
    await backend.run(backend.ops.submit([new_task("kept")]))
    backend.run_sync(backend.ops.submit([new_task("gone")]))
    found = await backend.run(backend.ops.facts())
    assert sorted(lane.type for lane in found.lanes.values()) == ["gone", "kept"]
    assert await depth(backend) == 2


async def test_how_the_caller_likes_its_rows_is_left_alone(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    theirs.row_factory = sqlite3.Row
    theirs.text_factory = bytes
    joined = backend.driver.join(theirs)
    (accepted,) = joined.run_sync(backend.ops.submit([new_task("ship", tags={"a": "b"})]))
    (task,) = joined.run_sync(backend.ops.get([accepted.task_id]))
    assert task is not None
    assert (task.type, task.tags) == ("ship", {"a": "b"})
    theirs.commit()
    assert (theirs.row_factory, theirs.text_factory) == (sqlite3.Row, bytes)
    (row,) = theirs.execute("SELECT type FROM lanes").fetchall()
    assert row["type"] == b"ship"


async def test_waiters_hear_of_the_caller_s_commit(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    wakeup = await backend.driver.listen()
    backend.driver.join(theirs).run_sync(backend.ops.submit([new_task("ship")]))
    assert not await wakeup.wait(0.02)
    theirs.commit()
    assert await wakeup.wait(10)
    await wakeup.aclose()


class Pooled:
    """What SQLAlchemy's pool hands out: the driver's connection, wrapped."""

    def __init__(self, connection: Any) -> None:
        self.driver_connection = connection


class Connection:
    def __init__(self, connection: Any) -> None:
        self.connection = Pooled(connection)


class Session:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def connection(self) -> Connection:
        return Connection(self._connection)


class AsyncSession:
    async def connection(self) -> None: ...


@pytest.mark.parametrize("wrap", [Pooled, Connection, Session])
async def test_a_connection_inside_a_session(
    backend: Backend, theirs: sqlite3.Connection, wrap: type
) -> None:
    backend.driver.join(wrap(theirs)).run_sync(backend.ops.submit([new_task("ship")]))
    theirs.commit()
    assert await depth(backend) == 1


async def test_connections_that_lead_elsewhere(backend: Backend, tmp_path: Path) -> None:
    for stranger in (object(), None, "tasks.db", AsyncSession(), Session(object())):
        with pytest.raises(InvalidConnection, match=r"sqlite3\.Connection"):
            backend.driver.join(stranger)
    for elsewhere in (":memory:", tmp_path / "other.db"):
        with (
            closing(sqlite3.connect(elsewhere)) as connection,
            pytest.raises(InvalidConnection, match="another database"),
        ):
            backend.driver.join(connection)
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as connection:
        joined = backend.driver.join(connection)
    with pytest.raises(InvalidConnection, match="closed"):
        joined.run_sync(tallies(backend.ops))
    memory = engines.open("sqlite://")
    with pytest.raises(InvalidConnection, match="memory"):
        memory.driver.join(sqlite3.connect)
    await memory.driver.aclose()


async def test_a_file_that_was_not_prepared(tmp_path: Path) -> None:
    backend = engines.open(f"sqlite:///{tmp_path}/empty.db")
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("VACUUM")  # so that there is a file
        with pytest.raises(SchemaMissing):
            backend.driver.join(connection).run_sync(tallies(backend.ops))
    await backend.driver.aclose()


async def test_a_caller_who_finds_the_file_locked(
    backend: Backend, theirs: sqlite3.Connection
) -> None:
    theirs.execute("PRAGMA busy_timeout = 1")
    async with backend.driver.transaction():
        with pytest.raises(StoreBusy):
            backend.driver.join(theirs).run_sync(backend.ops.submit([new_task("ship")]))
        assert not theirs.in_transaction
    backend.driver.join(theirs).run_sync(backend.ops.submit([new_task("ship")]))


# -- a handler's transaction ---------------------------------------------------------------------


@pytest.fixture(params=["file", "memory"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    backend = engines.open(url, patience=5)
    await backend.run(backend.ops.migrate())
    yield backend
    await backend.driver.aclose()


async def test_a_handler_s_writes_and_an_operation_s(either: Backend) -> None:
    async with either.driver.transaction() as transaction:
        transaction.connection.execute("CREATE TABLE orders (name TEXT)")
        transaction.connection.execute("INSERT INTO orders VALUES ('book')")
        transaction.connection.row_factory = sqlite3.Row
        await transaction.run(either.ops.submit([new_task("ship")]))
    assert await depth(either) == 1
    with pytest.raises(RuntimeError, match="over"):
        _ = transaction.connection

    async def change_of_mind() -> None:
        async with either.driver.transaction() as transaction:
            transaction.connection.execute("DELETE FROM orders")
            await transaction.run(either.ops.submit([new_task("another")]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await change_of_mind()
    async with either.driver.transaction() as transaction:
        assert transaction.connection.execute("SELECT * FROM orders").fetchall() == [("book",)]
    assert await depth(either) == 1
    await either.run(either.ops.submit([new_task("another")]))
    assert await depth(either) == 2


async def test_a_failed_operation_leaves_the_rest_of_the_transaction(either: Backend) -> None:
    await either.run(either.ops.submit([new_task("ship", {"n": 0}, idempotency_key="k")]))
    async with either.driver.transaction() as transaction:
        await transaction.run(either.ops.submit([new_task("ship")]))
        with pytest.raises(IdempotencyConflict):
            await transaction.run(
                either.ops.submit(
                    [new_task("new-lane"), new_task("ship", {"n": 1}, idempotency_key="k")]
                )
            )
        await transaction.run(either.ops.submit([new_task("new-lane")]))
    assert await depth(either) == 3
    assert await count(either) == 3


async def test_others_wait_until_it_ends(either: Backend) -> None:
    async with either.driver.transaction() as transaction:
        writing = asyncio.create_task(either.run(either.ops.submit([new_task("later")])))
        (first,) = await transaction.run(either.ops.submit([new_task("first")]))
        await asyncio.sleep(0.05)
        assert not writing.done()
    (second,) = await writing
    assert first.created_at < second.created_at
    assert await depth(either) == 2


@pytest.mark.parametrize("name", ["", "/tasks.db"])
async def test_whoever_waits_too_long_hears_of_it(tmp_path: Path, name: str) -> None:
    either = engines.open(f"sqlite:///{tmp_path}{name}" if name else "sqlite://", patience=0.2)
    await either.run(either.ops.migrate())
    async with either.driver.transaction():
        with pytest.raises(StoreBusy):
            await either.run(either.ops.submit([new_task("work")]))
        with pytest.raises(StoreBusy):
            async with either.driver.transaction():
                pass
    # The one that gave up has left nothing locked.
    await either.run(either.ops.submit([new_task("work")]))
    async with either.driver.transaction() as transaction:
        await transaction.run(either.ops.submit([new_task("work")]))
    assert await depth(either) == 2
    await either.driver.aclose()


async def test_waiters_hear_of_a_commit(either: Backend) -> None:
    wakeup = await either.driver.listen()
    async with either.driver.transaction() as transaction:
        await transaction.run(either.ops.submit([new_task("work")]))
        assert not await wakeup.wait(0.02)
    assert await wakeup.wait(10)
    await wakeup.aclose()


async def test_more_transactions_than_there_are_cores(either: Backend) -> None:
    """Those that wait are in nobody's way, least of all in that of the one they wait for."""

    async def transact() -> None:
        async with either.driver.transaction() as transaction:
            await transaction.run(either.ops.submit([new_task("work")]))

    await asyncio.gather(*(transact() for _ in range(40)))
    assert await depth(either) == 40


@pytest.mark.parametrize("when", ["waiting", "inside", "running"])
async def test_a_cancelled_handler_leaves_nothing_locked(either: Backend, when: str) -> None:
    inside = asyncio.Event()

    async def transact() -> None:
        async with either.driver.transaction() as transaction:
            inside.set()
            if when == "running":
                while True:
                    await transaction.run(either.ops.submit([new_task("work")]))
            await asyncio.sleep(60)

    if when == "waiting":
        async with either.driver.transaction():
            task = asyncio.create_task(transact())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not inside.is_set()
    else:
        task = asyncio.create_task(transact())
        await inside.wait()
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await either.run(either.ops.submit([new_task("work")]))
    assert await depth(either) == 1


async def test_a_handler_that_commits_by_itself(either: Backend) -> None:
    async with either.driver.transaction() as transaction:
        await transaction.run(either.ops.submit([new_task("work")]))
        transaction.connection.commit()
        with pytest.raises(RuntimeError, match="over"):
            await transaction.run(either.ops.submit([new_task("work")]))
    assert await depth(either) == 1


async def test_what_sqlite_refuses_is_told_in_our_words(either: Backend) -> None:
    async with either.driver.transaction() as transaction:
        transaction.connection.execute("DROP TABLE documents")
        with pytest.raises(SchemaMissing):
            await transaction.run(either.ops.schedules(["daily"]))
        transaction.connection.rollback()
    assert await either.run(either.ops.schedules(["daily"])) == [None]


# -- a transaction that takes too long -----------------------------------------------------------

PATIENCE = 30.0


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Backend]:
    """Another process on the same file."""
    backend = engines.open(f"sqlite:///{tmp_path}/tasks.db", patience=PATIENCE)
    yield backend
    await backend.driver.aclose()


async def register(backend: Backend, lease: float) -> None:
    await backend.run(backend.ops.register(NewWorker(f"lease-{lease}", lease=lease)))


def write_meanwhile(other: Backend, written: threading.Event) -> None:
    def write() -> None:
        other.run_sync(other.ops.submit([new_task("ship")]))
        written.set()

    threading.Thread(target=write).start()


async def wait_in_loop(_: sqlite3.Connection, written: threading.Event) -> None:
    await asyncio.to_thread(written.wait, PATIENCE)


async def block_the_loop(_: sqlite3.Connection, written: threading.Event) -> None:
    written.wait(PATIENCE)


async def write_late(connection: sqlite3.Connection, written: threading.Event) -> None:
    await wait_in_loop(connection, written)
    connection.execute("INSERT INTO orders VALUES ('late')")


async def compute_in_sql(connection: sqlite3.Connection, written: threading.Event) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    # Which error it is, if any, depends on what the connection did before the thread asks for it.
    with suppress(sqlite3.Error, SystemError):
        await asyncio.to_thread(connection.execute, endless)
    await wait_in_loop(connection, written)


async def read_slowly(connection: sqlite3.Connection, written: threading.Event) -> None:
    reading = connection.execute("SELECT 1 UNION ALL SELECT 2")
    reading.fetchone()
    await wait_in_loop(connection, written)


async def compute_while_reading(connection: sqlite3.Connection, written: threading.Event) -> None:
    reading = connection.execute("SELECT 1 UNION ALL SELECT 2")
    reading.fetchone()
    await compute_in_sql(connection, written)


@pytest.mark.parametrize(
    "linger",
    [
        wait_in_loop,
        block_the_loop,
        write_late,
        compute_in_sql,
        read_slowly,
        compute_while_reading,
    ],
)
async def test_a_transaction_that_takes_too_long_is_rolled_back(
    backend: Backend,
    theirs: sqlite3.Connection,
    other: Backend,
    linger: Callable[[sqlite3.Connection, threading.Event], Awaitable[None]],
) -> None:
    """After a third of a worker's lease the others get on, whatever the caller does."""
    theirs.commit()
    await register(backend, 0.6)
    written = threading.Event()

    async def transact() -> None:
        async with backend.driver.transaction() as transaction:
            transaction.connection.execute("INSERT INTO orders VALUES ('book')")
            write_meanwhile(other, written)
            await linger(transaction.connection, written)
            assert written.is_set(), "the others waited until the handler was done"

    with pytest.raises(TransactionTooLong, match="rolled back"):
        await transact()
    assert theirs.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    async with backend.driver.transaction() as transaction:
        transaction.connection.execute("INSERT INTO orders VALUES ('book')")
    assert theirs.execute("SELECT count(*) FROM orders").fetchone() == (1,)


def hold_until_ended(backend: Backend, other: Backend) -> None:
    """Hold the lock in blocking code until somebody else could write all the same."""
    written = threading.Event()
    with backend.driver.transaction_sync() as connection:
        write_meanwhile(other, written)
        assert written.wait(PATIENCE), "the others waited until the program was done"
        connection.execute("INSERT INTO orders VALUES ('late')")


async def test_a_blocking_transaction_that_takes_too_long_is_rolled_back(
    backend: Backend, theirs: sqlite3.Connection, other: Backend
) -> None:
    await register(backend, 0.6)
    with pytest.raises(TransactionTooLong, match="rolled back"):
        await asyncio.to_thread(hold_until_ended, backend, other)
    assert theirs.execute("SELECT count(*) FROM orders").fetchone() == (0,)


async def test_its_time_begins_with_the_lock(
    backend: Backend, theirs: sqlite3.Connection, other: Backend, tmp_path: Path
) -> None:
    """Whatever else keeps the loop of the caller, who is not told yet that it has the lock."""
    await register(backend, 0.6)
    written = threading.Event()

    async def transact() -> None:
        async with backend.driver.transaction():
            pass

    transacting = asyncio.create_task(transact())
    await asyncio.sleep(0)
    with closing(FileLock(tmp_path / "tasks.db.lock")) as lock:
        while lock.acquire(wait=False):
            lock.release()
    write_meanwhile(other, written)
    assert written.wait(PATIENCE), "the others waited for the loop"
    with pytest.raises(TransactionTooLong):
        await transacting


async def test_the_shortest_lease_of_those_that_live_is_the_limit(
    backend: Backend, theirs: sqlite3.Connection, other: Backend
) -> None:
    await register(backend, 0.15)
    await backend.run(backend.ops.shift_clock(60))
    assert await backend.run(backend.ops.bury(["lease-0.15"])) == ["lease-0.15"]
    for lease in (900.0, 0.6, 90.0):
        await register(backend, lease)
    with pytest.raises(TransactionTooLong, match=r"for 0\.2 s"):
        await asyncio.to_thread(hold_until_ended, backend, other)


async def test_where_no_worker_lives_the_usual_lease_is_the_limit(
    backend: Backend, theirs: sqlite3.Connection, other: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are started at any time, and must be able to register."""
    monkeypatch.setattr(limits, "LEASE_SECONDS", 0.6)
    with pytest.raises(TransactionTooLong, match=r"for 0\.2 s"):
        await asyncio.to_thread(hold_until_ended, backend, other)


# -- writers without the lock ----------------------------------------------------------------------

BROKEN, FIXED = (3, 40, 1), (3, 51, 3)


def submit_beside(backend: Backend, connection: sqlite3.Connection) -> None:
    backend.driver.join(connection).run_sync(backend.ops.submit([new_task("ship")]))
    connection.commit()


@pytest.mark.parametrize(
    ("version", "worker", "warnings"),
    [(BROKEN, True, 1), (BROKEN, False, 0), (FIXED, True, 0)],
)
async def test_a_caller_is_warned_once_where_its_connection_is_a_risk(
    backend: Backend,
    theirs: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    version: tuple[int, int, int],
    worker: bool,
    warnings: int,
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    if worker:
        await backend.run(backend.ops.register(NewWorker("w")))
    for _ in range(3):
        submit_beside(backend, theirs)
    found = [each.getMessage() for each in caplog.records if each.name == "fairlane.store"]
    assert len(found) == warnings
    if warnings:
        (told,) = (await backend.driver.durability()).warnings
        assert told in found[0]  # in the words of `fairlane doctor`
        assert "app.transaction()" in told


async def test_transactions_of_fairlane_are_no_risk(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", BROKEN)
    await backend.run(backend.ops.register(NewWorker("w")))
    async with backend.driver.transaction() as transaction:
        joined = backend.driver.join(transaction.connection)
        await joined.run(backend.ops.submit([new_task("ship")]))
    assert await depth(backend) == 1
    assert not caplog.records
