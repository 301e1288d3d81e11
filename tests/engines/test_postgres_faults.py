"""What can go wrong with a PostgreSQL server, and what Fairlane says and does about it."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    AccessDenied,
    FairlaneError,
    InvalidStoreURL,
    InvalidTaskId,
    NotAFairlaneStore,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Beat, NewWorker
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.engines.postgres.schema import VERSION
from tests.conftest import Servers
from tests.fixtures.counters import depths
from tests.fixtures.servers import PostgresServer, postgres
from tests.fixtures.stores import World, get_all

PATIENCE = 0.5


@pytest.fixture
def server(servers: Servers) -> PostgresServer:
    """A server that the test leaves as it was."""
    return servers.postgres("newest")


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server to stop, kill and configure."""
    with postgres("newest") as server:
        yield server


@asynccontextmanager
async def opened(url: str, patience: float = PATIENCE, **options: Any) -> AsyncIterator[Backend]:
    async with engines.open(url, patience=patience, **options) as backend:
        yield backend


@asynccontextmanager
async def migrated(url: str, patience: float = PATIENCE, **options: Any) -> AsyncIterator[Backend]:
    async with opened(url, patience, **options) as backend:
        await backend.run(backend.ops.migrate())
        yield backend


def sql(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements as the superuser; the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def tables(url: str) -> list[tuple[Any, ...]]:
    return sql(
        url,
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2",
    )


def terminate_all(url: str) -> int:
    return len(
        sql(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND application_name = 'fairlane'",
        )
    )


def as_role(url: str, role: str) -> str:
    return url.replace("user=postgres", f"user={role}")


async def submit(backend: Backend) -> str:
    (accepted,) = await backend.run(backend.ops.submit([new_task("work")]))
    return accepted.task_id


# --- the schema ---------------------------------------------------------------------------------


async def test_a_database_that_was_not_prepared(server: PostgresServer) -> None:
    url = server.new_database()
    async with opened(url) as backend:
        assert await backend.run(backend.ops.version()) == 0
        with pytest.raises(SchemaMissing, match="migrate"):
            await submit(backend)
        with pytest.raises(SchemaMissing):
            await asyncio.to_thread(backend.run_sync, backend.ops.workers())
        assert tables(url) == []
        assert await backend.run(backend.ops.migrate()) == VERSION
        await submit(backend)


async def test_a_schema_of_that_name_that_is_someone_else_s(server: PostgresServer) -> None:
    url = server.new_database()
    sql(url, "CREATE SCHEMA fairlane", "CREATE TABLE fairlane.ferries (name text)")
    before = tables(url)
    async with opened(url) as backend:
        for op in (
            backend.ops.migrate(),
            backend.ops.version(),
            backend.ops.submit([new_task("w")]),
        ):
            with pytest.raises(NotAFairlaneStore, match="fairlane"):
                await backend.run(op)
    assert tables(url) == before


async def test_an_empty_schema_made_by_an_administrator_is_filled(server: PostgresServer) -> None:
    url = server.new_database()
    sql(url, "CREATE SCHEMA fairlane")
    async with migrated(url) as backend:
        await submit(backend)


@pytest.mark.parametrize(("version", "error"), [(99, SchemaTooNew), (-1, SchemaTooOld)])
async def test_a_schema_of_another_version(
    server: PostgresServer, version: int, error: type[FairlaneError]
) -> None:
    url = server.new_database()
    async with migrated(url):
        sql(url, f"UPDATE fairlane.fairlane_schema SET version = {version}")
    async with opened(url) as backend:
        with pytest.raises(error):
            await submit(backend)
        if error is SchemaTooNew:
            with pytest.raises(SchemaTooNew):
                await backend.run(backend.ops.migrate())


async def test_many_migrate_at_once(server: PostgresServer) -> None:
    url = server.new_database()
    backends = [engines.open(url) for _ in range(5)]
    versions = await asyncio.gather(*(each.run(each.ops.migrate()) for each in backends))
    assert versions == [VERSION] * 5
    for backend in backends:
        await backend.driver.aclose()


async def test_the_schema_disappears_and_comes_back(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url) as backend:
        await submit(backend)
        sql(url, "DROP SCHEMA fairlane CASCADE")
        with pytest.raises(SchemaMissing):
            await submit(backend)
        await backend.run(backend.ops.migrate())
        task_id = await submit(backend)
        (task,) = await backend.run(backend.ops.get([task_id]))
        assert task is not None


# --- rights -------------------------------------------------------------------------------------


async def test_a_role_without_rights(server: PostgresServer) -> None:
    url = server.new_database()
    role = f"guest_{urlsplit(url).path.removeprefix('/')}"
    sql(url, f"CREATE ROLE {role} LOGIN")
    guest = as_role(url, role)
    async with opened(guest) as backend:
        with pytest.raises(AccessDenied, match="permission denied"):
            await backend.run(backend.ops.migrate())
    assert tables(url) == []
    async with migrated(url) as owner:
        await submit(owner)
        async with opened(guest) as backend:
            with pytest.raises(AccessDenied, match="rights on schema fairlane"):
                await submit(backend)
            with pytest.raises(AccessDenied):
                await asyncio.to_thread(backend.run_sync, backend.ops.workers())
        assert (await owner.run(depths(owner.ops))) == {("default", 5): 1}


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_a_role_and_a_database_that_do_not_exist(server: PostgresServer, colour: str) -> None:
    async def run(backend: Backend) -> None:
        if colour == "async":
            await backend.run(backend.ops.version())
        else:
            await asyncio.to_thread(backend.run_sync, backend.ops.version())

    async with opened(as_role(server.url, "nobody_at_all")) as backend:
        with pytest.raises(AccessDenied if colour == "async" else StoreUnusable):
            await run(backend)
    async with opened(server.url_of("no_such_database")) as backend:
        with pytest.raises(StoreUnusable, match="create the database"):
            await run(backend)


async def test_secrets_stay_secret() -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/db"
    async with opened(url, 0.0) as backend:
        for attempt in (
            backend.run(backend.ops.version()),
            asyncio.to_thread(backend.run_sync, backend.ops.version()),
        ):
            with pytest.raises(StoreUnavailable) as caught:
                await attempt
            assert "s3cret" not in str(caught.value)
            assert "127.0.0.1:1" in str(caught.value)
    for url in (
        "postgresql://me:s3cret@host:port/db",
        "postgresql://me:s3cret/more@host/db",  # a slash that should have been escaped
        "postgresql://me:s3cret@\u2100/db",
        "postgresql://me:s3cret@[/db",
    ):
        with pytest.raises(InvalidStoreURL) as refused:
            engines.open(url)
        assert "s3cret" not in str(refused.value)


# --- the server goes and comes --------------------------------------------------------------------


async def test_a_server_that_is_restarted(own_server: PostgresServer) -> None:
    url = own_server.new_database()
    async with migrated(url, patience=30.0) as backend:
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker)))
        first = await submit(backend)
        await asyncio.to_thread(backend.run_sync, backend.ops.workers())
        own_server.stop()
        waiting = asyncio.create_task(submit(backend))
        sync = asyncio.create_task(asyncio.to_thread(backend.run_sync, backend.ops.workers()))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await asyncio.to_thread(own_server.start)
        second = await waiting
        assert len(await sync) == 1
        grant = await backend.run(backend.ops.claim(Ask(worker, "r", 10)))
        assert [task.task_id for task in grant.tasks] == [first, second]


async def test_a_server_that_is_killed_loses_nothing(own_server: PostgresServer) -> None:
    url = own_server.new_database()
    async with migrated(url, patience=30.0) as backend:
        stored: list[str] = []
        stop = asyncio.Event()

        async def keep_submitting() -> None:
            while not stop.is_set():
                stored.append(await submit(backend))

        submitters = [asyncio.create_task(keep_submitting()) for _ in range(4)]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
        count = len(stored)
        while len(stored) < count + 20:
            stored.append(await submit(backend))
        stop.set()
        await asyncio.gather(*submitters)
        tasks = await get_all(backend, stored)
        assert all(task is not None for task in tasks)
        assert await backend.run(depths(backend.ops)) == {("default", 5): len(stored)}


async def test_a_server_that_stays_away(own_server: PostgresServer) -> None:
    url = own_server.new_database()
    async with migrated(url) as backend:
        await submit(backend)
        own_server.stop()
        began = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await submit(backend)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await asyncio.to_thread(backend.run_sync, backend.ops.workers())
        assert asyncio.get_running_loop().time() - began < 20 * PATIENCE
        own_server.start()
        await submit(backend)


async def test_sessions_that_are_terminated(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url, patience=10.0) as backend:
        for _ in range(3):
            await asyncio.gather(*(submit(backend) for _ in range(8)))
            await asyncio.to_thread(backend.run_sync, backend.ops.workers())
            assert terminate_all(url) >= 2
        await asyncio.gather(*(submit(backend) for _ in range(8)))
        assert await backend.run(depths(backend.ops)) == {("default", 5): 32}


async def test_a_server_that_is_read_only(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url) as backend:
        await submit(backend)
        name = urlsplit(url).path.removeprefix("/")
        sql(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        terminate_all(url)
        with pytest.raises(StoreReadOnly, match="primary"):
            await submit(backend)
        assert await backend.run(depths(backend.ops)) == {("default", 5): 1}
        sql(
            url,
            "SET default_transaction_read_only = off",
            f"ALTER DATABASE {name} RESET default_transaction_read_only",
        )
        await submit(backend)


async def test_settings_of_the_role_do_no_harm(server: PostgresServer) -> None:
    url = server.new_database()
    name = urlsplit(url).path.removeprefix("/")
    for setting in (
        "statement_timeout = '10ms'",
        "lock_timeout = '1ms'",
        "idle_in_transaction_session_timeout = '1ms'",
        "idle_session_timeout = '50ms'",
        "default_transaction_isolation = 'serializable'",
        "search_path = 'nowhere'",
        "timezone = 'Asia/Kathmandu'",
        "bytea_output = 'escape'",
        "extra_float_digits = -15",
    ):
        sql(url, f"ALTER DATABASE {name} SET {setting}")
    async with migrated(url, patience=10.0) as backend:
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker)))
        task_id = await submit(backend)
        await asyncio.sleep(0.1)
        grant = await backend.run(backend.ops.claim(Ask(worker, "r", 10)))
        assert [task.task_id for task in grant.tasks] == [task_id]


# --- callers that give up -------------------------------------------------------------------------


async def held_up(url: str, count: int = 1) -> None:
    """Wait until so many statements of ours wait for a lock."""
    while True:
        ((waiting,),) = sql(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
            " AND datname = current_database() AND wait_event_type = 'Lock'",
        )
        if waiting >= count:
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_cancelled_caller_leaves_nothing_behind(
    server: PostgresServer, keyed: bool
) -> None:
    """Neither half a write nor a connection on which someone else's reply is still to come."""
    url = server.new_database()
    async with migrated(url, patience=5.0, connections=2) as backend:
        await submit(backend)
        options: dict[str, Any] = {"idempotency_key": "k"} if keyed else {}
        with psycopg.connect(url) as blocker:
            blocker.execute("LOCK TABLE fairlane.ready IN ACCESS EXCLUSIVE MODE")
            task = new_task("work", {"n": 1}, **options)
            callers = [
                asyncio.create_task(backend.run(backend.ops.submit([task]))) for _ in range(2)
            ]
            await held_up(url, 2)
            for caller in callers:
                caller.cancel()
            done = await asyncio.gather(*callers, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in done)
            await asyncio.wait_for(backend.run(backend.ops.workers()), 5)
            blocker.rollback()
        assert await backend.run(backend.ops.get([task.task_id])) == [None]
        assert await backend.run(depths(backend.ops)) == {("default", 5): 1}
        assert sql(url, "SELECT count(*) FROM fairlane.idempotency_keys") == [(0,)]
        again = new_task("work", {"n": 2}, **options)
        (accepted,) = await backend.run(backend.ops.submit([again]))
        assert (accepted.task_id, accepted.known) == (again.task_id, False)


async def test_a_cancelled_claim_is_whole_or_nothing(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url, patience=5.0) as backend:
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker)))
        await backend.run(backend.ops.submit([new_task("work") for _ in range(200)]))
        for number in range(30):
            ask = Ask(worker, f"r{number}", 5)
            caller = asyncio.create_task(backend.run(backend.ops.claim(ask)))
            await asyncio.sleep(0.0003 * (number % 10))
            caller.cancel()
            await asyncio.gather(caller, return_exceptions=True)
            # Asked again under the same name, it is given the same or given anew: never more.
            again = await backend.run(backend.ops.claim(ask))
            assert len(again.tasks) == 5
        ((held,),) = sql(url, "SELECT count(*) FROM fairlane.held")
        ((ready,),) = sql(url, "SELECT count(*) FROM fairlane.ready")
        assert held + ready == 200
        assert held == 150


async def test_locks_of_others_are_waited_for_and_then_told(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url, patience=0.0) as backend:
        await submit(backend)
        with psycopg.connect(url) as blocker:
            blocker.execute("LOCK TABLE fairlane.content IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusy):
                await submit(backend)
        await submit(backend)


# --- hints ----------------------------------------------------------------------------------------


async def test_a_waiter_whose_connection_is_killed_is_woken_again(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url) as backend, opened(url, patience=5.0) as other:
        wakeup = await backend.driver.listen()
        try:
            assert terminate_all(url) >= 1
            assert await wakeup.wait(10)  # it is back: who knows what was missed
            while await wakeup.wait(0.2):
                pass
            waiting = asyncio.create_task(wakeup.wait(10))
            await asyncio.sleep(0)
            await submit(other)
            assert await waiting
        finally:
            await wakeup.aclose()


async def test_a_waiter_outlives_its_server(own_server: PostgresServer) -> None:
    url = own_server.new_database()
    async with migrated(url, patience=20.0) as backend:
        wakeup = await backend.driver.listen()
        try:
            own_server.stop()
            assert not await wakeup.wait(0.2)
            await asyncio.to_thread(own_server.start)
            assert await wakeup.wait(20)
        finally:
            await wakeup.aclose()


async def test_listening_to_a_server_that_is_not_there_yet(own_server: PostgresServer) -> None:
    url = own_server.new_database()
    own_server.stop()
    async with opened(url, patience=20.0) as backend:
        wakeup = await backend.driver.listen()
        try:
            assert not await wakeup.wait(0.1)
            await asyncio.to_thread(own_server.start)
            assert await wakeup.wait(20)
        finally:
            await wakeup.aclose()


async def test_a_busy_worker_is_not_notified_and_looks_again(server: PostgresServer) -> None:
    """The lock is let go of while nobody waits; whoever comes back to wait looks first."""
    url = server.new_database()

    def waiters() -> int:
        ((count,),) = sql(
            url,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        return int(count)

    async with migrated(url) as backend:
        wakeup = await backend.driver.listen()
        try:
            assert not await wakeup.wait(0.01)
            assert waiters() == 1
            async with asyncio.timeout(10):
                while waiters() > 0:
                    await asyncio.sleep(0.05)
                    continue
            assert await wakeup.wait(5)
            assert waiters() == 1
        finally:
            await wakeup.aclose()


# --- the rest -------------------------------------------------------------------------------------


async def test_durability_is_read_from_the_server(server: PostgresServer) -> None:
    async with opened(server.url) as backend:
        told = await backend.driver.durability()
        assert told.engine == "postgresql"
        assert told.settings["synchronous_commit"] == "on"
        assert [warning.split()[0] for warning in told.warnings] == ["fsync", "full_page_writes"]


async def test_an_id_that_is_none_is_refused(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url) as backend:
        for bad in ("nonsense", "a,b", "{}", '"', f"{new_id()},{new_id()}"):
            with pytest.raises(InvalidTaskId):
                await backend.run(backend.ops.get([bad, new_id()]))


async def test_used_in_one_loop_after_another(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url):
        pass
    backend = engines.open(url)

    def in_a_loop_of_its_own() -> str:
        return asyncio.run(submit(backend))

    ids = [await asyncio.to_thread(in_a_loop_of_its_own) for _ in range(3)]
    tasks = await get_all(backend, ids)
    assert [task and task.status for task in tasks] == [State.QUEUED] * 3
    await backend.driver.aclose()


async def test_two_calls_of_one_request_at_once(server: PostgresServer) -> None:
    """A reply that got lost is asked for again while the first call is still under way."""
    url = server.new_database()
    async with migrated(url) as backend, opened(url, patience=10.0) as other:
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker)))
        await backend.run(backend.ops.submit([new_task("work") for _ in range(100)]))
        for number in range(20):
            ask = Ask(worker, f"r{number}", 2)
            first, second = await asyncio.gather(
                *(each.run(each.ops.claim(ask)) for each in (backend, other))
            )
            assert first.tasks == second.tasks
            assert len(first.tasks) == 2


STUCK = 4711


@asynccontextmanager
async def stuck_claim(url: str) -> AsyncIterator[None]:
    """The next claim gets as far as noting itself down, and no further before the end of this."""
    sql(
        url,
        "CREATE SEQUENCE claims",
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('public.claims') = 1 THEN PERFORM pg_advisory_xact_lock({STUCK}); END IF;"
        " RETURN NULL; END $$",
        "CREATE TRIGGER hold BEFORE UPDATE ON fairlane.workers EXECUTE FUNCTION hold()",
    )
    with psycopg.connect(url) as holder:
        holder.execute(f"SELECT pg_advisory_lock({STUCK})")
        yield


async def has_got_stuck(url: str) -> None:
    async with asyncio.timeout(20):
        while not sql(url, "SELECT pid FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_claim_that_was_long_given_up_takes_nothing(server: PostgresServer) -> None:
    """Whoever made it has repeated it since, and gone on: nobody would hear of what it takes."""
    url = server.new_database()
    async with migrated(url) as backend, opened(url, patience=0) as impatient:
        run, ops = backend.run, backend.ops
        worker = await run(ops.register(NewWorker(new_id())))
        await run(ops.submit([new_task("work") for _ in range(4)]))
        await impatient.run(impatient.ops.claim(Ask(worker, "zero", 1)))  # it knows the lanes now
        async with stuck_claim(url):
            late = asyncio.create_task(impatient.run(impatient.ops.claim(Ask(worker, "one", 1))))
            await has_got_stuck(url)
            heard = [await run(ops.claim(Ask(worker, request, 1))) for request in ("one", "two")]
        with pytest.raises(StoreBusy):
            await late
        assert sum(len(grant.tasks) for grant in heard) == 2
        (stored,) = await run(ops.workers())
        assert len(stored.current_tasks) == 3
        assert {*stored.current_tasks} > {grant.tasks[0].task_id for grant in heard}


async def test_what_a_claim_takes_that_was_given_up_is_heard_of(server: PostgresServer) -> None:
    """It had locked all there was, so that nobody who came after it was given anything."""
    url = server.new_database()
    async with migrated(url) as backend, opened(url, patience=0) as impatient:
        run, ops = backend.run, backend.ops
        worker = await run(ops.register(NewWorker(new_id())))
        await run(ops.submit([new_task("work") for _ in range(2)]))
        await impatient.run(impatient.ops.claim(Ask(worker, "zero", 1, heard="")))
        async with stuck_claim(url):
            late = Ask(worker, "one", 1, heard="zero")
            claiming = asyncio.create_task(impatient.run(impatient.ops.claim(late)))
            await has_got_stuck(url)
            for request in ("one", "two"):
                grant = await run(ops.claim(Ask(worker, request, 1, heard="zero")))
                assert grant.tasks == []
        taken = (await claiming).tasks
        assert len(taken) == 1
        grant = await run(ops.claim(Ask(worker, "three", 1, heard="zero")))
        assert (grant.tasks, grant.request_id) == (taken, "one")


@pytest.mark.parametrize("point", range(9))
async def test_a_type_that_comes_up_in_the_middle_of_a_claim(
    server: PostgresServer, point: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After whichever statement: its tasks are found soon, and not overlooked for good."""
    url = server.new_database()
    async with migrated(url) as backend, opened(url) as other:
        side = backend.driver._async  # type: ignore[attr-defined]
        call, calls = side.call, itertools.count()

        async def interrupted(*args: Any) -> Any:
            reply = await call(*args)
            if next(calls) == point:
                await other.run(other.ops.submit([new_task("second")]))
            return reply

        worker = await backend.run(backend.ops.register(NewWorker(new_id())))
        await other.run(other.ops.submit([new_task("first")]))
        monkeypatch.setattr(side, "call", interrupted)
        found: list[str] = []
        for _ in range(4):
            grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), 10)))
            found += [task.type for task in grant.tasks]
        assert next(calls) > point, "it was never interrupted"
        assert sorted(found) == ["first", "second"]


async def test_what_is_known_of_lanes_does_not_go_back(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operation reads the catalogue slowly, another one has learnt more meanwhile."""
    url = server.new_database()
    async with migrated(url) as backend, opened(url) as other:
        worker = await backend.run(backend.ops.register(NewWorker(new_id())))
        await other.run(other.ops.submit([new_task("first")]))
        side = backend.driver._async  # type: ignore[attr-defined]
        call, read, go_on = side.call, asyncio.Event(), asyncio.Event()

        async def slowly(connection: Any, request: Any) -> Any:
            reply = await call(connection, request)
            if "FROM fairlane.lanes" in request.sql and not read.is_set():
                read.set()
                await go_on.wait()
            return reply

        monkeypatch.setattr(side, "call", slowly)
        slow = asyncio.create_task(backend.run(backend.ops.controls()))
        await read.wait()
        await other.run(other.ops.submit([new_task("second")]))
        seen = Claims(backend, worker)
        assert sorted(await seen.types()) == ["first", "second"]
        go_on.set()
        await slow
        await other.run(other.ops.submit([new_task("second")]))
        assert await seen.types() == ["second"]


class Claims:
    """Of one worker."""

    def __init__(self, backend: Backend, worker_id: str) -> None:
        self._backend = backend
        self._worker_id = worker_id

    async def types(self) -> list[str]:
        ask = Ask(self._worker_id, new_id(), 10)
        return [task.type for task in (await self._backend.run(self._backend.ops.claim(ask))).tasks]


async def test_a_store_that_has_lost_its_last_changes_is_looked_at_anew(
    own_server: PostgresServer,
) -> None:
    """What a process remembers of its lanes may mean something else after a failover."""
    url = own_server.new_database()
    async with migrated(url) as backend, migrated(url) as other:
        await backend.run(backend.ops.submit([new_task("pay")]))
        own_server.stop()
        own_server.start()
        # As if all of that had never reached the server that answers now.
        sql(url, "DROP SCHEMA fairlane CASCADE")
        await other.run(other.ops.migrate())
        await other.run(other.ops.submit([new_task("refund")]))
        (accepted,) = await backend.run(backend.ops.submit([new_task("pay")]))
        (task,) = await get_all(other, [accepted.task_id])
        assert task is not None
        assert task.type == "pay"


async def test_one_run_that_is_locked_holds_up_no_other(server: PostgresServer) -> None:
    """A handler's transaction hangs, with its task's row in its hands: all others are reaped."""
    url = server.new_database()
    async with migrated(url) as backend:
        world = World(backend, url, {})
        worker = await world.worker(lease=1.0)
        ids = [await world.submit() for _ in range(3)]
        await world.claim(worker, 3)
        await world.advance(60.0)
        with psycopg.connect(url) as handler:
            handler.execute(
                "SELECT FROM fairlane.held WHERE task_id = %s::text::uuid FOR UPDATE", [ids[1]]
            )
            for _ in range(2):
                await world.reap()
            states = [await world.state(task_id) for task_id in ids]
            assert states == [State.QUEUED, State.EXECUTING, State.QUEUED]
        await world.reap()
        assert await world.state(ids[1]) is State.QUEUED


async def test_who_waits_for_what_is_locked_does_not_spin(server: PostgresServer) -> None:
    url = server.new_database()
    async with migrated(url) as backend:
        run, ops = backend.run, backend.ops
        worker = await run(ops.register(NewWorker(new_id())))
        await run(ops.submit([new_task("work", delay_seconds=60.0)]))
        await run(ops.shift_clock(120.0))
        with psycopg.connect(url) as other:
            other.execute("SELECT FROM fairlane.waiting FOR UPDATE")
            grant = await run(ops.claim(Ask(worker, new_id(), 1)))
            assert grant.tasks == []
            assert grant.next_due_in == 0.05
        assert len((await run(ops.claim(Ask(worker, new_id(), 1)))).tasks) == 1


async def test_a_key_that_an_ended_task_left_behind_is_taken(server: PostgresServer) -> None:
    """Who submits has the key's row locked at the moment at which its task ends."""
    url = server.new_database()
    async with migrated(url) as backend:
        run, ops = backend.run, backend.ops
        first, second, third = (new_task("work", unique=True) for _ in range(3))
        await run(ops.submit([first]))
        await run(ops.cancel([first.task_id]))
        await run(ops.submit([second]))
        with psycopg.connect(url) as other:
            other.execute("SELECT FROM fairlane.uniques FOR UPDATE")
            await run(ops.cancel([second.task_id]))
        assert sql(url, "SELECT task_id::text FROM fairlane.uniques") == [(second.task_id,)]
        (replayed,) = await run(ops.replay([first.task_id]))
        assert replayed.applied
        (accepted,) = await run(ops.submit([third]))
        assert (accepted.task_id, accepted.known) == (first.task_id, True)


async def test_a_draining_mark_and_beats_at_once(server: PostgresServer) -> None:
    """A beat never takes back what an operator decided while it was under way."""
    url = server.new_database()
    async with migrated(url, patience=10.0) as backend:
        for _ in range(10):
            worker = new_id()
            await backend.run(backend.ops.register(NewWorker(worker)))
            status = (await backend.run(backend.ops.workers()))[-1].status
            beats = [
                backend.run(backend.ops.heartbeat(Beat(worker, status=status))) for _ in range(5)
            ]
            mark = backend.run(backend.ops.mark(worker, type(status).DRAINING))
            await asyncio.gather(*beats, mark)
            workers = await backend.run(backend.ops.workers())
            assert {each.worker_id: each.status for each in workers}[worker] == "draining"


@pytest.mark.parametrize("limited", [False, True])
async def test_many_streams_are_still_read_in_order(server: PostgresServer, limited: bool) -> None:
    """More streams than one statement reads at once: the best ones are found first."""
    url = server.new_database()
    rng = random.Random(5)
    async with migrated(url, patience=10.0) as backend:
        worker = new_id()
        await backend.run(backend.ops.register(NewWorker(worker, lease=80_000)))
        if limited:
            await backend.run(backend.ops.limit("type-7", concurrency=1_000))
        ids: list[str] = []
        for _ in range(6):
            tasks = [
                new_task(f"type-{rng.randrange(60)}", priority=rng.randrange(11))
                for _ in range(100)
            ]
            ids += [answer.task_id for answer in await backend.run(backend.ops.submit(tasks))]
            await backend.run(backend.ops.shift_clock(400))
        found = [task for task in await get_all(backend, ids) if task]
        expected = sorted(
            found, key=lambda task: (-task.effective_priority, task.ready_at, task.task_id)
        )
        claimed: list[str] = []
        while len(claimed) < len(ids):
            ask = Ask(worker, new_id(), rng.choice([1, 7, 50]))
            grant = await backend.run(backend.ops.claim(ask))
            assert grant.tasks
            claimed += [task.task_id for task in grant.tasks]
        assert claimed == [task.task_id for task in expected]
