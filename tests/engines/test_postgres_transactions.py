"""Tasks in transactions of callers, and handlers' writes in transactions of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.errors import (
    IdempotencyConflict,
    InvalidConnection,
    LeaseLost,
    NotSupported,
    SchemaMissing,
    StoreBusy,
    StoreUnavailable,
)
from fairlane.core.flow import Flow, Mode, Op
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewTask, NewWorker, TaskError, Verdict
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, Query
from fairlane.engines.postgres.errors import Duplicate
from tests.fixtures.counters import depths
from tests.fixtures.servers import PostgresServer
from tests.fixtures.stores import new_store, settlement, verdicts_of

T = TypeVar("T")

SETTINGS = (
    "SELECT name, setting FROM pg_settings"
    " WHERE name NOT LIKE '%timeout' AND name <> 'transaction_isolation' ORDER BY name"
)


class Caller:
    """A connection of some kind, and how to speak, commit and roll back on it."""

    def __init__(
        self,
        given: Any,
        say: Callable[[str], Any],
        commit: Callable[[], Any],
        rollback: Callable[[], Any],
        *,
        blocks: bool,
    ) -> None:
        self.given = given
        self._say = say
        self._commit = commit
        self._rollback = rollback
        self.blocks = blocks

    async def say(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement of the caller's own."""
        rows = await self._do(lambda: self._say(sql))
        return [tuple(row) for row in rows or ()]

    async def commit(self) -> None:
        await self._do(self._commit)

    async def rollback(self) -> None:
        await self._do(self._rollback)

    async def run(self, backend: Backend, op: Op[T]) -> T:
        joined = backend.driver.join(self.given)
        if self.blocks:
            return await asyncio.to_thread(joined.run_sync, op)
        return await joined.run(op)

    async def submit(self, backend: Backend, *tasks: NewTask) -> list[str]:
        answers = await self.run(backend, backend.ops.submit(list(tasks)))
        return [answer.task_id for answer in answers]

    async def _do(self, deed: Callable[[], Any]) -> Any:
        if self.blocks:
            return await asyncio.to_thread(deed)
        return await deed()


# --- connections of every kind --------------------------------------------------------------------


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url) as connection:
        connection.execute("SET client_encoding = 'LATIN1'")
        connection.commit()

        def say(sql: str) -> Any:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

        yield Caller(connection, say, connection.commit, connection.rollback, blocks=True)


@asynccontextmanager
async def by_psycopg_with_dicts(url: str) -> AsyncIterator[Caller]:
    """Autocommit and a block, rows as dicts: what others prefer."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:

        def say(sql: str) -> Any:
            cursor = connection.execute(sql)
            rows = cursor.fetchall() if cursor.description else []
            return [row.values() for row in rows]

        def begin() -> None:
            connection.execute("BEGIN")

        begin()

        def end(word: str) -> None:
            connection.execute(word)
            begin()

        yield Caller(connection, say, lambda: end("COMMIT"), lambda: end("ROLLBACK"), blocks=True)


@asynccontextmanager
async def by_async_psycopg(url: str) -> AsyncIterator[Caller]:
    connection = await psycopg.AsyncConnection.connect(url)

    async def say(sql: str) -> Any:
        cursor = await connection.execute(sql)
        return await cursor.fetchall() if cursor.description else []

    yield Caller(connection, say, connection.commit, connection.rollback, blocks=False)
    await connection.close()


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    async with _asyncpg_caller(connection) as caller:
        yield caller
    await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        _asyncpg_caller(connection) as caller,
    ):
        yield caller


@asynccontextmanager
async def _asyncpg_caller(connection: Any) -> AsyncIterator[Caller]:
    transactions = [connection.transaction()]
    await transactions[0].start()

    async def end(how: str) -> None:
        await getattr(transactions[0], how)()
        transactions[0] = connection.transaction()
        await transactions[0].start()

    yield Caller(
        connection,
        connection.fetch,
        lambda: end("commit"),
        lambda: end("rollback"),
        blocks=False,
    )
    await transactions[0].rollback()


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Caller]:
    engine = create_engine(_for_sqlalchemy(url, "psycopg"), poolclass=NullPool)
    with Session(engine) as session:

        def say(sql: str) -> Any:
            result: Any = session.execute(text(sql))
            return result.all() if result.returns_rows else []

        yield Caller(session, say, session.commit, session.rollback, blocks=True)


@asynccontextmanager
async def by_connection(url: str) -> AsyncIterator[Caller]:
    engine = create_engine(_for_sqlalchemy(url, "psycopg"), poolclass=NullPool)
    with engine.connect() as connection:

        def say(sql: str) -> Any:
            result = connection.execute(text(sql))
            return result.all() if result.returns_rows else []

        yield Caller(connection, say, connection.commit, connection.rollback, blocks=True)


def by_async_session(driver: str) -> Callable[[str], AbstractAsyncContextManager[Caller]]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(_for_sqlalchemy(url, driver), poolclass=NullPool)
        async with AsyncSession(engine) as session:

            async def say(sql: str) -> Any:
                result: Any = await session.execute(text(sql))
                return result.all() if result.returns_rows else []

            yield Caller(session, say, session.commit, session.rollback, blocks=False)
        await engine.dispose()

    return opened


def by_async_connection(driver: str) -> Callable[[str], AbstractAsyncContextManager[Caller]]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(_for_sqlalchemy(url, driver), poolclass=NullPool)
        async with engine.connect() as connection:

            async def say(sql: str) -> Any:
                result = await connection.execute(text(sql))
                return result.all() if result.returns_rows else []

            yield Caller(connection, say, connection.commit, connection.rollback, blocks=False)
        await engine.dispose()

    return opened


def _for_sqlalchemy(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


KINDS: dict[str, Callable[[str], AbstractAsyncContextManager[Caller]]] = {
    "psycopg": by_psycopg,
    "psycopg-dicts": by_psycopg_with_dicts,
    "psycopg-async": by_async_psycopg,
    "asyncpg": by_asyncpg,
    "asyncpg-pool": by_asyncpg_pool,
    "session": by_session,
    "connection": by_connection,
    "async-session-asyncpg": by_async_session("asyncpg"),
    "async-session-psycopg": by_async_session("psycopg"),
    "async-connection-asyncpg": by_async_connection("asyncpg"),
    "async-connection-psycopg": by_async_connection("psycopg"),
}


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with an empty store on each version of PostgreSQL."""
    url = new_store(postgres_server)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
async def backend(postgres_url: str) -> AsyncIterator[Backend]:
    async with engines.open(postgres_url, patience=15.0) as backend:
        yield backend


@pytest.fixture(params=KINDS)
async def caller(
    request: pytest.FixtureRequest, postgres_url: str, backend: Backend
) -> AsyncIterator[Caller]:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE orders (number integer PRIMARY KEY)")
    async with KINDS[request.param](postgres_url) as caller:
        yield caller


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        ((rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(rows)


async def stored(backend: Backend, *task_ids: str) -> list[State | None]:
    tasks = await backend.run(backend.ops.get(task_ids))
    return [None if task is None else task.status for task in tasks]


async def claim(backend: Backend) -> Claimed:
    worker = new_id()
    await backend.run(backend.ops.register(NewWorker(worker)))
    (task,) = (await backend.run(backend.ops.claim(Ask(worker, new_id(), 1)))).tasks
    return task


# --- join -----------------------------------------------------------------------------------------


async def test_a_task_exists_once_the_caller_commits(
    caller: Caller, backend: Backend, postgres_url: str
) -> None:
    (task_id,) = await caller.submit(backend, new_task("work", {"to": "Ω"}))
    await caller.say("INSERT INTO orders VALUES (1)")
    (keyed,) = await caller.submit(backend, new_task("keyed", idempotency_key="Ω", delay_seconds=9))
    assert await stored(backend, task_id, keyed) == [None, None]
    assert await backend.run(depths(backend.ops)) == {}
    await caller.commit()
    assert await stored(backend, task_id, keyed) == [State.QUEUED, State.SCHEDULED]
    assert count(postgres_url, "orders") == 1
    task = await claim(backend)
    assert (task.task_id, task.payload) == (task_id, '{"to":"Ω"}'.encode())
    assert verdicts_of(await backend.run(backend.ops.settle([settlement(task)]))) == [
        Verdict.APPLIED
    ]


async def test_nothing_is_left_of_what_is_rolled_back(
    caller: Caller, backend: Backend, postgres_url: str
) -> None:
    await caller.say("INSERT INTO orders VALUES (1)")
    plain, keyed = await caller.submit(
        backend, new_task("work"), new_task("keyed", idempotency_key="k")
    )
    await caller.rollback()
    assert await stored(backend, plain, keyed) == [None, None]
    for table in ("content", "ready", "journal", "tallies", "tally_deltas", "idempotency_keys"):
        assert count(postgres_url, f"fairlane.{table}") == 0, table
    assert count(postgres_url, "orders") == 0
    # And the process remembers nothing that is not there.
    again = new_task("work", idempotency_key="k")
    (answer,) = await backend.run(backend.ops.submit([again]))
    assert (answer.task_id, answer.known) == (again.task_id, False)
    assert (await claim(backend)).task_id == again.task_id


async def test_an_operation_that_fails_undoes_only_itself(caller: Caller, backend: Backend) -> None:
    await caller.say("INSERT INTO orders VALUES (1)")
    (first,) = await caller.submit(backend, new_task("work", {"n": 1}, idempotency_key="k"))
    with pytest.raises(IdempotencyConflict):
        await caller.submit(backend, new_task("new"), new_task("work", {}, idempotency_key="k"))
    # The same task once more is known, though its first row stands in the way of a second.
    task = new_task("work")
    answers = [
        (await caller.run(backend, backend.ops.submit(batch)))[0]
        for batch in ([task], [task, new_task("more")])
    ]
    assert [(answer.task_id, answer.known) for answer in answers] == [
        (task.task_id, False),
        (task.task_id, True),
    ]
    await caller.say("INSERT INTO orders VALUES (2)")
    await caller.commit()
    assert await stored(backend, first, task.task_id) == [State.QUEUED] * 2
    assert await backend.run(depths(backend.ops)) == {("default", 5): 3}


async def test_an_operation_that_goes_on_after_a_failure(caller: Caller, backend: Backend) -> None:
    """What it had done stays done, as it would if each of its statements were a transaction."""

    def insert(number: int) -> Query:
        return Query("INSERT INTO public.orders VALUES ($1)", (number,))

    def steps() -> Flow[str]:
        with suppress(Duplicate):
            yield insert(1)
        yield insert(2)
        with suppress(Duplicate):
            yield insert(2)
        yield ROLLBACK  # of nothing
        yield insert(3)
        yield BEGIN
        yield insert(4)
        with suppress(Duplicate):
            yield insert(4)
        yield ROLLBACK
        yield BEGIN
        yield insert(5)
        yield COMMIT
        with suppress(Duplicate):
            yield insert(5)
        ((path,),) = yield Query("SELECT current_setting('search_path')")
        return str(path)

    await caller.say("INSERT INTO orders VALUES (1)")
    before = await caller.say(SETTINGS)
    assert await caller.run(backend, Op("steps", Mode.WRITE, steps)) == "pg_catalog"
    assert await caller.say(SETTINGS) == before
    await caller.commit()
    assert await caller.say("SELECT number FROM orders ORDER BY 1") == [(1,), (2,), (3,), (5,)]


async def test_the_caller_s_session_is_left_as_it_was(caller: Caller, backend: Backend) -> None:
    before = await caller.say(SETTINGS)
    await caller.submit(backend, new_task("work", idempotency_key="k"))
    assert await caller.say(SETTINGS) == before
    with pytest.raises(IdempotencyConflict):
        await caller.submit(backend, new_task("other", idempotency_key="k"))
    assert await caller.say(SETTINGS) == before
    await caller.commit()
    assert await caller.say(SETTINGS) == before


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_isolation_of_the_caller(caller: Caller, backend: Backend, level: str) -> None:
    """Their snapshot is older than the lane that their task goes to."""
    await caller.rollback()
    await caller.say(f"SET TRANSACTION ISOLATION LEVEL {level}")
    await caller.say("SELECT count(*) FROM orders")
    plain, keyed = await caller.submit(
        backend, new_task("work"), new_task("work", idempotency_key="k")
    )
    ((isolation,),) = await caller.say("SHOW transaction_isolation")
    assert isolation == level.lower()
    await caller.commit()
    assert await stored(backend, plain, keyed) == [State.QUEUED] * 2


async def drop_lanes(backend: Backend) -> int:
    return sum([await backend.run(backend.ops.drop_lanes()) for _ in range(3)])


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("closed", ["before", "after"])
async def test_lanes_are_dropped_around_a_callers_transaction(
    caller: Caller, backend: Backend, monkeypatch: pytest.MonkeyPatch, level: str, closed: str
) -> None:
    """Lanes are closed before or after its snapshot; a task never goes to one that is removed."""
    monkeypatch.setattr("fairlane.core.limits.LANE_SECONDS", 0.0)
    await caller.rollback()
    for name in ("plain", "keyed", "newest"):
        (used,) = await backend.run(backend.ops.submit([new_task(name)]))
        await backend.run(backend.ops.cancel([used.task_id]))
        await backend.run(backend.ops.delete([used.task_id]))
    await backend.run(backend.ops.submit([new_task("newest")]))
    if closed == "before":
        assert await backend.run(backend.ops.drop_lanes()) == 0  # closes them
    await caller.say(f"SET TRANSACTION ISOLATION LEVEL {level}")
    await caller.say("SELECT count(*) FROM orders")
    if closed == "after":
        dropped = await drop_lanes(backend)
        # A driver may keep the snapshot of its last statement for longer.
        assert dropped == 0 if level == "REPEATABLE READ" else dropped in {0, 2}
    plain = await caller.submit(backend, new_task("plain"))
    keyed = await caller.submit(backend, new_task("keyed", idempotency_key="k"))
    assert await drop_lanes(backend) == 0  # the tasks are not committed, but may be
    await caller.commit()
    assert await drop_lanes(backend) == 0
    assert await stored(backend, *plain, *keyed) == [State.QUEUED] * 2
    worker = await backend.run(backend.ops.register(NewWorker(new_id())))
    grant = await backend.run(backend.ops.claim(Ask(worker, "r", 10)))
    assert {task.type for task in grant.tasks} == {"plain", "keyed", "newest"}


async def test_a_key_that_someone_else_took_after_the_snapshot(
    caller: Caller, backend: Backend
) -> None:
    await caller.rollback()
    await caller.say("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await caller.say("INSERT INTO orders VALUES (1)")
    task = new_task("work", idempotency_key="k")
    await backend.run(backend.ops.submit([task]))
    with pytest.raises(StoreBusy, match="serialize"):
        await caller.submit(backend, new_task("work", idempotency_key="k"))
    await caller.rollback()
    assert await caller.submit(backend, new_task("work", idempotency_key="k")) == [task.task_id]


async def test_whoever_waits_for_a_key_gets_it_after_a_rollback(
    caller: Caller, backend: Backend, postgres_url: str
) -> None:
    await caller.submit(backend, new_task("work", {"by": 1}, idempotency_key="k"))
    mine = new_task("work", {"by": 2}, idempotency_key="k")
    waiting = asyncio.create_task(backend.run(backend.ops.submit([mine])))
    await blocked(postgres_url)
    assert not waiting.done()
    await caller.rollback()
    (answer,) = await waiting
    assert (answer.task_id, answer.known) == (mine.task_id, False)


async def blocked(url: str) -> None:
    """Wait until a statement of ours waits for a lock."""
    while True:
        with psycopg.connect(url) as connection:
            ((waiting,),) = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
                " AND datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchall()
        if waiting:
            return
        await asyncio.sleep(0.01)


async def test_a_new_lane_in_a_long_transaction_holds_up_nobody(
    caller: Caller, backend: Backend, postgres_url: str
) -> None:
    await caller.submit(backend, new_task("new", queue="new", priority=7))
    async with engines.open(postgres_url, patience=0.0) as other, asyncio.timeout(4):
        for type in ("new", "newer"):
            await other.run(other.ops.submit([new_task(type, queue="new", priority=7)]))
        await other.run(other.ops.pause(True, queue="elsewhere"))  # noqa: FBT003
        await claim(other)
    await caller.rollback()
    # The lane stays, and is not taken for something that was rolled back.
    await backend.run(backend.ops.submit([new_task("new", queue="new", priority=7)]))
    await claim(backend)


async def test_the_hint_comes_with_the_commit(caller: Caller, backend: Backend) -> None:
    await caller.submit(backend, new_task("work"))  # makes the lane
    await caller.commit()
    wakeup = await backend.driver.listen()
    try:
        while await wakeup.wait(0.2):
            pass
        await caller.submit(backend, new_task("work"))
        assert not await wakeup.wait(0.3)
        waiting = asyncio.create_task(wakeup.wait(10))
        await asyncio.sleep(0)
        await caller.commit()
        assert await waiting
    finally:
        await wakeup.aclose()


async def test_other_operations_join_too(caller: Caller, backend: Backend) -> None:
    (task_id,) = await caller.submit(backend, new_task("work"))
    (seen,) = await caller.run(backend, backend.ops.get([task_id]))
    assert seen is not None
    (cancelled,) = await caller.run(backend, backend.ops.cancel([task_id]))
    assert cancelled.applied
    (replayed,) = await caller.run(backend, backend.ops.replay([task_id], level=9))
    assert replayed.applied
    await caller.commit()
    assert await stored(backend, task_id) == [State.QUEUED]
    assert await backend.run(depths(backend.ops)) == {("default", 9): 1}


async def test_what_everyone_waits_for_cannot_join(caller: Caller, backend: Backend) -> None:
    for op in (backend.ops.pause(True), backend.ops.limit("work", rate=1), backend.ops.migrate()):  # noqa: FBT003
        with pytest.raises(NotSupported, match="part of a transaction"):
            await caller.run(backend, op)
    assert await caller.say("SELECT 1") == [(1,)]


async def test_many_operations_in_one_transaction(caller: Caller, backend: Backend) -> None:
    """Counters are folded after every 128th write, but not in a caller's transaction."""
    for number in range(150):
        await caller.submit(backend, new_task("work", {"n": number}))
    await caller.commit()
    assert await backend.run(depths(backend.ops)) == {("default", 5): 150}


async def test_the_wrong_colour(caller: Caller, backend: Backend) -> None:
    joined = backend.driver.join(caller.given)
    op = backend.ops.submit([new_task("work")])
    if caller.blocks:
        with pytest.raises(InvalidConnection, match="block"):
            await joined.run(op)
    else:
        with pytest.raises(InvalidConnection, match="await"):
            joined.run_sync(op)


# --- connections that will not do -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_to_another_database(
    kind: str, backend: Backend, postgres_url: str
) -> None:
    elsewhere = postgres_url.replace("/test_", "/other_test_")
    name = elsewhere.partition("///")[2].partition("?")[0]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    async with KINDS[kind](elsewhere) as caller:
        with pytest.raises(SchemaMissing):
            await caller.submit(backend, new_task("work"))
        assert await caller.say("SELECT 1") == [(1,)]
    async with engines.open(elsewhere) as other:
        await other.run(other.ops.migrate())
    async with KINDS[kind](elsewhere) as caller:
        with pytest.raises(InvalidConnection, match="other_test"):
            await caller.submit(backend, new_task("work"))
        assert await caller.say("SELECT count(*) FROM fairlane.content") == [(0,)]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_store_that_was_made_anew_is_recognised(
    backend: Backend, postgres_url: str
) -> None:
    async with by_asyncpg(postgres_url) as caller:
        await caller.submit(backend, new_task("work"))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA fairlane CASCADE")
    await backend.run(backend.ops.migrate())
    async with by_asyncpg(postgres_url) as caller:
        (task_id,) = await caller.submit(backend, new_task("work"))
        await caller.commit()
    assert await stored(backend, task_id) == [State.QUEUED]


async def test_sessions_that_belong_to_a_thread_or_a_task(
    backend: Backend, postgres_url: str
) -> None:
    engine = create_engine(_for_sqlalchemy(postgres_url, "psycopg"), poolclass=NullPool)
    session = scoped_session(sessionmaker(engine))

    def in_a_thread() -> str:
        (answer,) = backend.driver.join(session).run_sync(backend.ops.submit([new_task("work")]))
        session.commit()
        session.remove()
        return answer.task_id

    async_engine = create_async_engine(_for_sqlalchemy(postgres_url, "asyncpg"), poolclass=NullPool)
    tasks = async_scoped_session(async_sessionmaker(async_engine), asyncio.current_task)
    (answer,) = await backend.driver.join(tasks).run(backend.ops.submit([new_task("work")]))
    await tasks.commit()
    await tasks.remove()
    ids = (await asyncio.to_thread(in_a_thread), answer.task_id)
    assert await stored(backend, *ids) == [State.QUEUED] * 2


async def test_another_database_of_sqlalchemy_s(backend: Backend) -> None:
    with (
        create_engine("sqlite://").connect() as connection,
        pytest.raises(InvalidConnection, match="sqlite3"),
    ):
        backend.driver.join(connection).run_sync(backend.ops.submit([new_task("work")]))


@pytest.mark.parametrize("thing", [None, 7, "postgresql://", object()])
def test_what_is_no_connection(thing: Any) -> None:
    backend = engines.open("postgresql:///nowhere")
    with pytest.raises(InvalidConnection, match="psycopg or asyncpg"):
        backend.driver.join(thing)


async def test_a_connection_without_a_transaction(backend: Backend, postgres_url: str) -> None:
    op = backend.ops.submit([new_task("work")])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(InvalidConnection, match="Begin a transaction first"):
            await asyncio.to_thread(backend.driver.join(connection).run_sync, op)
        with connection.transaction():
            await asyncio.to_thread(backend.driver.join(connection).run_sync, op)
    other = await asyncpg.connect(postgres_url)
    with pytest.raises(InvalidConnection, match="Begin a transaction first"):
        await backend.driver.join(other).run(op)
    await other.close()
    with pytest.raises(InvalidConnection, match="closed"):
        await backend.driver.join(other).run(op)
    with pytest.raises(InvalidConnection, match="closed"):
        backend.driver.join(connection).run_sync(op)
    engine = create_engine(_for_sqlalchemy(postgres_url, "psycopg"), poolclass=NullPool)
    with (
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as automatic,
        pytest.raises(InvalidConnection, match="Begin a transaction first"),
    ):
        await asyncio.to_thread(backend.driver.join(automatic).run_sync, op)


async def test_a_transaction_that_has_failed(backend: Backend, postgres_url: str) -> None:
    op = backend.ops.submit([new_task("work")])
    with psycopg.connect(postgres_url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        with pytest.raises(InvalidConnection, match="Roll it back"):
            await asyncio.to_thread(backend.driver.join(connection).run_sync, op)
        connection.rollback()
        await asyncio.to_thread(backend.driver.join(connection).run_sync, op)


# --- transactions of handlers ---------------------------------------------------------------------


@pytest.fixture
def orders(backend: Backend, postgres_url: str) -> str:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE orders (number integer PRIMARY KEY)")
    return postgres_url


async def complete(backend: Backend, task: Claimed, number: int) -> None:
    """What a worker does for a handler that wants its effect exactly once."""
    async with backend.driver.transaction() as transaction:
        await transaction.connection.execute("INSERT INTO orders VALUES ($1)", number)
        verdicts = verdicts_of(await transaction.run(backend.ops.settle([settlement(task)])))
        if verdicts != [Verdict.APPLIED]:
            raise LeaseLost


async def test_writes_and_completion_commit_together(backend: Backend, orders: str) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    task = await claim(backend)
    await complete(backend, task, 1)
    assert count(orders, "orders") == 1
    assert await stored(backend, task.task_id) == [State.COMPLETED]


async def test_a_circuit_waits_for_no_transaction(backend: Backend) -> None:
    """The probe's transaction closes the circuit before it commits, and blocks no other run."""
    ops = backend.ops
    await backend.run(ops.limit("work", breaker=Breaker(1, 60.0, 1.0)))
    await backend.run(ops.submit([new_task("work", max_retries=3) for _ in range(3)]))
    held = [await claim(backend) for _ in range(3)]
    bad = Failed(TaskError("x"), after=1_000)
    await backend.run(ops.settle([settlement(held[0], bad)]))
    await backend.run(ops.shift_clock(2.0))
    async with backend.driver.transaction() as transaction:
        await transaction.run(ops.settle([settlement(held[1])]))
        controls = await backend.run(ops.controls())
        assert controls.types["work"].open_until is None
        await backend.run(ops.settle([settlement(held[2], bad)]).within(1.0))
        controls = await backend.run(ops.controls())
        assert controls.types["work"].open_until is not None


async def test_whoever_lost_the_task_writes_nothing(backend: Backend, orders: str) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    task = await claim(backend)
    await backend.run(backend.ops.cancel([task.task_id]))
    with pytest.raises(LeaseLost):
        await complete(backend, task, 1)
    assert count(orders, "orders") == 0
    assert await stored(backend, task.task_id) == [State.CANCELLED]


async def test_of_two_attempts_at_once_the_one_that_holds_the_task_counts(
    backend: Backend, orders: str
) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    stale = await claim(backend)
    await backend.run(backend.ops.cancel([stale.task_id]))
    await backend.run(backend.ops.replay([stale.task_id]))
    live = await claim(backend)
    assert (live.task_id, live.attempt) == (stale.task_id, stale.attempt + 1)
    done = await asyncio.gather(
        *(complete(backend, stale, number) for number in range(3)),
        complete(backend, live, 9),
        return_exceptions=True,
    )
    assert [type(error) for error in done] == [LeaseLost] * 3 + [type(None)]
    with psycopg.connect(orders) as connection:
        assert connection.execute("SELECT number FROM orders").fetchall() == [(9,)]


async def test_handlers_may_nest_submit_and_spoil(backend: Backend, orders: str) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    task = await claim(backend)
    async with backend.driver.transaction() as transaction:
        connection = transaction.connection
        assert await connection.fetchval("SHOW search_path") == '"$user", public'
        assert await connection.fetchval("SHOW enable_seqscan") == "on"
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(asyncpg.UniqueViolationError):
            async with connection.transaction():
                await connection.execute("INSERT INTO orders VALUES (1)")
        await connection.execute("SET search_path = nowhere; SET statement_timeout = '10s'")
        (answer,) = await transaction.run(backend.ops.submit([new_task("next")]))
        await transaction.run(backend.ops.settle([settlement(task)]))
    assert await stored(backend, answer.task_id, task.task_id) == [State.QUEUED, State.COMPLETED]
    async with backend.driver.transaction() as transaction:  # the same connection, clean
        assert await transaction.connection.fetchval("SHOW search_path") == '"$user", public'
        assert await transaction.connection.fetchval("SHOW statement_timeout") == "0"


async def test_a_cancelled_handler_leaves_nothing(backend: Backend, orders: str) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    task = await claim(backend)
    for pause in ("SELECT 1", "SELECT pg_sleep(60)"):
        entered = asyncio.Event()

        async def handler(pause: str = pause, entered: asyncio.Event = entered) -> None:
            async with backend.driver.transaction() as transaction:
                await transaction.connection.execute("INSERT INTO orders VALUES (1)")
                await transaction.run(backend.ops.settle([settlement(task)]))
                entered.set()
                await transaction.connection.execute(pause)
                await asyncio.sleep(60)

        running = asyncio.create_task(handler())
        await entered.wait()
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert count(orders, "orders") == 0
        assert await stored(backend, task.task_id) == [State.EXECUTING]
    await complete(backend, task, 1)


async def test_a_transaction_that_is_ended_inside(backend: Backend, orders: str) -> None:
    async def ends_it() -> None:
        async with backend.driver.transaction() as transaction:
            await transaction.connection.execute("COMMIT")

    with pytest.raises(InvalidConnection, match="committed or rolled back inside"):
        await ends_it()
    async with backend.driver.transaction() as transaction:
        await transaction.connection.execute("INSERT INTO orders VALUES (1)")
    assert count(orders, "orders") == 1


async def test_long_transactions_do_not_use_up_the_connections(postgres_url: str) -> None:
    async with engines.open(postgres_url, connections=2) as backend:
        await backend.run(backend.ops.migrate())
        async with (
            asyncio.timeout(10),
            backend.driver.transaction() as one,
            backend.driver.transaction() as two,
        ):
            await asyncio.gather(
                *(each.run(backend.ops.submit([new_task(new_id())])) for each in (one, two)),
                *(backend.run(backend.ops.workers()) for _ in range(4)),
            )
        assert await backend.run(depths(backend.ops)) == {("default", 5): 2}


async def test_a_transaction_after_the_server_forgot_us(backend: Backend, orders: str) -> None:
    for number in range(3):
        async with backend.driver.transaction() as transaction:
            await transaction.connection.execute(f"INSERT INTO orders VALUES ({number})")
        with psycopg.connect(orders, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'fairlane' AND datname = current_database()"
            )
    assert count(orders, "orders") == 3


async def test_the_server_goes_away_inside_a_transaction(backend: Backend, orders: str) -> None:
    await backend.run(backend.ops.submit([new_task("work")]))
    task = await claim(backend)

    async def cut_off() -> None:
        async with backend.driver.transaction() as transaction:
            pid = await transaction.connection.fetchval("SELECT pg_backend_pid()")
            await transaction.connection.execute("INSERT INTO orders VALUES (1)")
            with psycopg.connect(orders, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])
            await transaction.run(backend.ops.settle([settlement(task)]))

    with pytest.raises(StoreUnavailable):
        await cut_off()
    assert count(orders, "orders") == 0
    await complete(backend, task, 2)
    assert await stored(backend, task.task_id) == [State.COMPLETED]
