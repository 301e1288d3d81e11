"""Behind PgBouncer in transaction mode: nothing that a session remembers is ours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import IdempotencyConflict, InvalidStoreURL
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewWorker, TaskError, Verdict
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import census
from tests.conftest import Servers
from tests.fixtures.counters import depths, tallies
from tests.fixtures.pgbouncer import PgBouncer, pgbouncer
from tests.fixtures.servers import PostgresServer
from tests.fixtures.stores import settlement, verdicts_of

VERSIONS = ("oldest", "newest")


@pytest.fixture(scope="module", params=VERSIONS)
def pooler(
    request: pytest.FixtureRequest, servers: Servers
) -> Iterator[tuple[PgBouncer, PostgresServer]]:
    server = servers.postgres(request.param)
    with pgbouncer(server, pool_size=2) as pooler:
        yield pooler, server


@pytest.fixture
def url(pooler: tuple[PgBouncer, PostgresServer]) -> str:
    bouncer, server = pooler
    return bouncer.url_of(server.new_database())


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    async with engines.open(url, patience=20.0) as backend:
        await backend.run(backend.ops.migrate())
        yield backend


async def worker_of(backend: Backend) -> str:
    worker = new_id()
    await backend.run(backend.ops.register(NewWorker(worker)))
    return worker


async def claim(backend: Backend, worker: str, slots: int = 10) -> list[Claimed]:
    return (await backend.run(backend.ops.claim(Ask(worker, new_id(), slots)))).tasks


def settings(url: str) -> list[tuple[Any, ...]]:
    """What a stranger finds who is lent each of the server's sessions in turn."""
    found = []
    connections = [psycopg.connect(url, prepare_threshold=None) for _ in range(2)]
    for connection in connections:
        (row,) = connection.execute(
            "SELECT current_setting('enable_seqscan'), current_setting('search_path'),"
            " current_setting('statement_timeout'), current_setting('plan_cache_mode'),"
            " (SELECT count(*) FROM pg_prepared_statements), pg_backend_pid()"
        ).fetchall()
        found.append(row)
    for connection in connections:
        connection.close()
    assert len({row[-1] for row in found}) == 2
    return [row[:-1] for row in found]


async def test_it_is_noticed_and_nothing_is_left_in_its_sessions(
    backend: Backend, url: str
) -> None:
    task = new_task("work", idempotency_key="k", delay_seconds=1)
    await asyncio.gather(*(backend.run(backend.ops.submit([task])) for _ in range(10)))
    await asyncio.gather(
        *(asyncio.to_thread(backend.run_sync, backend.ops.get([task.task_id])) for _ in range(10))
    )
    assert settings(url) == [("on", '"$user", public', "0", "auto", 0)] * 2


async def test_many_workers_share_few_connections(backend: Backend, url: str) -> None:
    backends = [engines.open(url, patience=20.0) for _ in range(4)]
    types = ["one", "two", "three"]
    seen: Counter[str] = Counter()
    ids: list[str] = []

    async def submitter(each: Backend, number: int) -> None:
        for round_ in range(10):
            tasks = [
                new_task(type, {"n": round_}, idempotency_key=f"{number}-{round_}-{type}")
                for type in types
            ]
            ids.extend(answer.task_id for answer in await each.run(each.ops.submit(tasks)))

    async def worker(each: Backend) -> None:
        me = await worker_of(each)
        while len(seen) < 4 * 10 * len(types):
            tasks = await claim(each, me, 5)
            seen.update(task.task_id for task in tasks)
            if tasks:
                verdicts = verdicts_of(
                    await each.run(each.ops.settle([settlement(task) for task in tasks]))
                )
                assert set(verdicts) == {Verdict.APPLIED}

    async with asyncio.timeout(60):
        await asyncio.gather(
            *(submitter(each, number) for number, each in enumerate(backends)),
            *(worker(each) for each in backends),
        )
    assert set(seen) == set(ids)
    assert set(seen.values()) == {1}
    counted = census(await backend.run(tallies(backend.ops)))
    assert {state: count for state, count in counted.items() if count} == {
        State.COMPLETED: len(ids)
    }
    for each in backends:
        await each.driver.aclose()


async def test_limits_hold_with_eight_claimers(backend: Backend, url: str) -> None:
    await backend.run(backend.ops.limit("work", concurrency=5))
    await backend.run(backend.ops.submit([new_task("work") for _ in range(60)]))
    backends = [engines.open(url, patience=20.0) for _ in range(8)]
    running: set[str] = set()
    done = 0

    async def claimer(each: Backend) -> None:
        nonlocal done
        me = await worker_of(each)
        while done < 60:
            tasks = await claim(each, me, 3)
            running.update(task.task_id for task in tasks)
            assert len(running) <= 5
            await asyncio.sleep(0.005)
            for task in tasks:
                running.discard(task.task_id)
                await each.run(each.ops.settle([settlement(task)]))
                done += 1

    async with asyncio.timeout(90):
        await asyncio.gather(*(claimer(each) for each in backends))
    assert done == 60
    for each in backends:
        await each.driver.aclose()


async def test_keys_retries_and_events(backend: Backend) -> None:
    me = await worker_of(backend)
    first = new_task("work", {"n": 1}, idempotency_key="k")
    (answer,) = await backend.run(backend.ops.submit([first]))
    (again,) = await backend.run(
        backend.ops.submit([new_task("work", {"n": 1}, idempotency_key="k")])
    )
    assert (again.task_id, again.known) == (answer.task_id, True)
    with pytest.raises(IdempotencyConflict):
        await backend.run(backend.ops.submit([new_task("work", {"n": 2}, idempotency_key="k")]))
    (same,) = await backend.run(backend.ops.submit([first]))
    assert same.known
    (task,) = await claim(backend, me)
    failure = settlement(task, Failed(TaskError("x")))
    assert verdicts_of(await backend.run(backend.ops.settle([failure]))) == [Verdict.APPLIED]
    assert verdicts_of(await backend.run(backend.ops.settle([failure]))) == [Verdict.APPLIED]
    await backend.run(backend.ops.shift_clock(60))
    (task,) = await claim(backend, me)
    assert (task.attempt, task.retry_count) == (2, 1)
    told: list[Any] = []
    async with asyncio.timeout(10):
        while len(told) < 6:
            found = await backend.run(backend.ops.events(None, 100))
            told = [event.verb for event in found.events]
    assert told == ["worker_joined", "submit", "claim", "retry", "due", "claim"]


async def test_controls(backend: Backend) -> None:
    me = await worker_of(backend)
    await backend.run(backend.ops.pause(True, queue="mail"))  # noqa: FBT003
    ids = [
        answer.task_id
        for answer in await backend.run(
            backend.ops.submit([new_task("work", queue="mail"), new_task("work", queue="post")])
        )
    ]
    assert [task.task_id for task in await claim(backend, me)] == [ids[1]]
    await backend.run(backend.ops.pause(False, queue="mail"))  # noqa: FBT003
    assert [task.task_id for task in await claim(backend, me)] == [ids[0]]
    (cancelled, _) = await backend.run(backend.ops.cancel(ids))
    assert cancelled.applied
    (replayed, _) = await asyncio.to_thread(backend.run_sync, backend.ops.replay(ids, level=9))
    assert replayed.applied
    assert {task.level for task in await claim(backend, me)} == {9}


async def test_a_waiter_looks_by_itself(backend: Backend, url: str) -> None:
    wakeup = await backend.driver.listen()
    async with engines.open(url) as other:
        try:
            assert not await wakeup.wait(0.1)
            async with asyncio.timeout(5):
                assert await wakeup.wait(60)  # nothing happened, but who knows
            # This process wakes its own waiters at once.
            waiting = asyncio.create_task(wakeup.wait(0.4))
            await asyncio.sleep(0)
            await backend.run(backend.ops.submit([new_task("work")]))
            assert await waiting
            await other.run(other.ops.submit([new_task("work")]))
            async with asyncio.timeout(5):
                assert await wakeup.wait(60)
        finally:
            await wakeup.aclose()


async def test_who_listens_past_it_is_woken_from_behind_it(
    pooler: tuple[PgBouncer, PostgresServer],
) -> None:
    """A web server behind PgBouncer, workers that are not."""
    bouncer, server = pooler
    direct = server.new_database()
    async with engines.open(direct) as workers, engines.open(bouncer.url_of(direct)) as web:
        await workers.run(workers.ops.migrate())
        await web.run(web.ops.submit([new_task("work")]))
        wakeup = await workers.driver.listen()
        try:
            while await wakeup.wait(0.2):
                pass
            waiting = asyncio.create_task(wakeup.wait(20))
            await asyncio.sleep(0)
            await web.run(web.ops.submit([new_task("work")]))
            assert await waiting
        finally:
            await wakeup.aclose()


async def test_transactions(backend: Backend, url: str) -> None:
    me = await worker_of(backend)
    with psycopg.connect(url, prepare_threshold=None) as connection:
        connection.execute("CREATE TABLE orders (number integer)")
        connection.commit()
        joined = backend.driver.join(connection)
        await asyncio.to_thread(joined.run_sync, backend.ops.submit([new_task("work")]))
        connection.commit()
    (task,) = await claim(backend, me)
    async with backend.driver.transaction() as transaction:
        await transaction.connection.execute("INSERT INTO orders VALUES ($1)", 1)
        verdicts = verdicts_of(await transaction.run(backend.ops.settle([settlement(task)])))
        assert verdicts == [Verdict.APPLIED]
    with psycopg.connect(url, prepare_threshold=None) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchall() == [(1,)]
    assert settings(url) == [("on", '"$user", public', "0", "auto", 0)] * 2


async def test_it_goes_away_and_comes_back(servers: Servers) -> None:
    server = servers.postgres("newest")
    with pgbouncer(server) as bouncer:
        url = bouncer.url_of(server.new_database())
        async with engines.open(url, patience=30.0) as backend:
            await backend.run(backend.ops.migrate())
            await backend.run(backend.ops.submit([new_task("work")]))
            bouncer.kill()
            waiting = asyncio.create_task(backend.run(backend.ops.submit([new_task("work")])))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            await asyncio.to_thread(bouncer.start)
            await waiting
            assert await backend.run(depths(backend.ops)) == {("default", 5): 2}


async def test_the_option_says_it_for_certain(servers: Servers) -> None:
    """For poolers that are not recognised, and for one that lends whole sessions."""
    server = servers.postgres("newest")
    direct = server.new_database()
    async with engines.open(f"{direct}&pgbouncer=true") as backend:
        await backend.run(backend.ops.migrate())
        await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))
        wakeup = await backend.driver.listen()
        assert await wakeup.wait(60)
        await wakeup.aclose()
    with pgbouncer(server, "session", pool_size=20) as bouncer:
        async with (
            engines.open(f"{bouncer.url_of(direct)}&pgbouncer=false") as backend,
            engines.open(direct) as other,
        ):
            await backend.run(backend.ops.submit([new_task("work")]))
            await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))
            wakeup = await backend.driver.listen()
            while await wakeup.wait(0.2):
                pass
            waiting = asyncio.create_task(wakeup.wait(20))
            await asyncio.sleep(0)
            await other.run(other.ops.submit([new_task("work")]))
            assert await waiting
            await wakeup.aclose()
            assert await backend.run(depths(backend.ops)) == {("default", 5): 4}


def test_the_option_is_true_or_false() -> None:
    with pytest.raises(InvalidStoreURL, match="pgbouncer"):
        engines.open("postgresql:///tasks?pgbouncer=maybe")
