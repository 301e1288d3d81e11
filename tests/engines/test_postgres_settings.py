"""Roles and databases with settings of their own: nothing of that changes what operations do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.flow import Flow, Mode, Op
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker, TaskError, Verdict
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.engines.postgres.calls import Query
from tests.fixtures.counters import depths
from tests.fixtures.stores import settlement, verdicts_of

HOSTILE = {
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "statement_timeout": "50ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "20ms",
    "idle_session_timeout": "50ms",
    "search_path": "nowhere, pg_catalog",
    "timezone": "Asia/Kathmandu",
    "datestyle": "German, DMY",
    "intervalstyle": "iso_8601",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "client_encoding": "LATIN1",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "standard_conforming_strings": "off",
    "enable_indexscan": "off",
    "enable_nestloop": "off",
    "plan_cache_mode": "force_custom_plan",
}

# Looks right to anyone who looks for it there first.
IMPOSTOR = """
CREATE SCHEMA nowhere;
GRANT USAGE ON SCHEMA nowhere TO PUBLIC;
CREATE FUNCTION nowhere.count(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION nowhere.round(double precision) RETURNS double precision
    LANGUAGE sql AS 'SELECT 0::float8';
"""


@pytest.fixture(params=["serializable", "repeatable read"])
def url(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    """The database as a role sees it that has everything set otherwise."""
    role = f"odd_{urlsplit(postgres_url).path.removeprefix('/')}"
    settings = HOSTILE | {"default_transaction_isolation": request.param}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(IMPOSTOR.encode())
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(
            f"GRANT CREATE ON DATABASE {role.removeprefix('odd_')} TO {role}".encode()
        )
        for name, value in settings.items():
            wanted = value if name == "search_path" else f"'{value}'"
            connection.execute(f"ALTER ROLE {role} SET {name} = {wanted}".encode())
    yield postgres_url.replace("user=postgres", f"user={role}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role} CASCADE".encode())
        connection.execute(f"DROP ROLE {role}".encode())


@pytest.fixture(params=["async", "sync"])
async def run(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Any]:
    async with engines.open(url, patience=20.0) as backend:

        async def run(op: Op[Any]) -> Any:
            if request.param == "async":
                return await backend.run(op)
            return await asyncio.to_thread(backend.run_sync, op)

        await run(backend.ops.migrate())
        yield run, backend


async def test_operations_do_what_they_always_do(run: tuple[Any, Backend], url: str) -> None:
    do, backend = run
    ops = backend.ops
    worker = new_id()
    await do(ops.register(NewWorker(worker)))
    text = "Ω \\ ' \x00 🐍"
    plain = new_task("work", {"text": text}, tags={"note": "Ω"}, timeout_seconds=0.1)
    keyed = new_task("work", {"n": 1}, idempotency_key="Ω", max_retries=1)
    later = new_task("work", delay_seconds=0.1234567)
    answers = await do(ops.submit([plain, keyed, later]))
    assert [answer.state for answer in answers] == [State.QUEUED, State.QUEUED, State.SCHEDULED]
    (known,) = await do(ops.submit([new_task("work", {"n": 1}, idempotency_key="Ω")]))
    assert (known.task_id, known.known) == (keyed.task_id, True)
    await asyncio.sleep(0.15)  # longer than an idle session may last
    tasks = (await do(ops.claim(Ask(worker, "r", 10)))).tasks
    assert {task.task_id for task in tasks} == {plain.task_id, keyed.task_id, later.task_id}
    by_id = {task.task_id: task for task in tasks}
    assert by_id[plain.task_id].payload == plain.payload
    assert by_id[plain.task_id].timeout == 0.1
    settlements = [
        settlement(by_id[plain.task_id], seconds=0.1),
        settlement(by_id[keyed.task_id], Failed(TaskError(text)), seconds=None),
        settlement(by_id[later.task_id], seconds=1 / 3),
    ]
    assert verdicts_of(await do(ops.settle(settlements))) == [Verdict.APPLIED] * 3
    done, failed, third = await do(ops.get([plain.task_id, keyed.task_id, later.task_id]))
    assert (done.status, done.tags) == (State.COMPLETED, {"note": "Ω"})
    assert (failed.status, failed.error.message) == (State.RETRYING, text)
    assert (third.completed_at - third.started_at).total_seconds() == pytest.approx(1 / 3, abs=1e-6)
    assert (await do(ops.replay([keyed.task_id])))[0].applied
    assert (await do(ops.cancel([keyed.task_id])))[0].applied
    told: list[Any] = []
    async with asyncio.timeout(10):
        while "cancel" not in told:  # once nobody's transaction is older
            found = await do(ops.events(None, 100))
            told = [event.verb for event in found.events]
    assert told.count("complete") == 2


async def test_many_at_once_do_not_get_in_each_other_s_way(
    run: tuple[Any, Backend], url: str
) -> None:
    """As they would if their transactions were serializable."""
    do, backend = run
    ops = backend.ops
    worker = new_id()
    await do(ops.register(NewWorker(worker)))
    await asyncio.gather(*(do(ops.submit([new_task("work")])) for _ in range(20)))
    grants = await asyncio.gather(*(do(ops.claim(Ask(worker, new_id(), 5))) for _ in range(4)))
    tasks = [task for grant in grants for task in grant.tasks]
    assert len({task.task_id for task in tasks}) == len(tasks) == 20
    await asyncio.gather(*(do(ops.settle([settlement(task)])) for task in tasks))
    assert await do(depths(ops)) == {}


def slow() -> Flow[int]:
    rows = yield Query("SELECT pg_sleep(0.2)")
    return len(rows)


async def test_a_statement_may_take_its_time(run: tuple[Any, Backend]) -> None:
    """The role's limits would cut it off."""
    do, _ = run
    assert await do(Op("slow", Mode.READ, slow)) == 1
    assert await do(Op("slow", Mode.TRANSACTION, slow)) == 1


async def test_transactions_of_handlers(
    run: tuple[Any, Backend], url: str, postgres_url: str
) -> None:
    do, backend = run
    role = url.rpartition("=")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # How long a handler may think is for the role to say.
        connection.execute(f"ALTER ROLE {role} RESET idle_in_transaction_session_timeout".encode())
    worker = new_id()
    await do(backend.ops.register(NewWorker(worker)))
    await do(backend.ops.submit([new_task("work", {"text": "Ω"})]))
    (task,) = (await do(backend.ops.claim(Ask(worker, "r", 10)))).tasks
    async with backend.driver.transaction() as transaction:
        isolation = await transaction.connection.fetchval("SHOW transaction_isolation")
        assert isolation == "read committed"
        with pytest.raises(asyncpg.QueryCanceledError):
            async with transaction.connection.transaction():
                await transaction.connection.execute("SELECT pg_sleep(0.2)")
        assert await transaction.run(Op("slow", Mode.READ, slow)) == 1
        verdicts = verdicts_of(await transaction.run(backend.ops.settle([settlement(task)])))
        assert verdicts == [Verdict.APPLIED]
