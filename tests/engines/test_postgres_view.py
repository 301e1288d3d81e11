"""The view `tasks`: what people see who know the table of that name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import SchemaMissing, StoreUnusable
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker, TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.submission import new_task
from fairlane.engines.postgres import schema
from tests.fixtures.stores import settlement

# As the design document of that library prints them.
DIRECT_ACCESS = """
SELECT * FROM tasks WHERE state='pending' ORDER BY priority DESC;
SELECT COUNT(*) FROM tasks WHERE state='failed';
SELECT AVG(completed_at - started_at) FROM tasks WHERE state='completed';
"""

COLUMNS = [
    *("id", "name", "args", "kwargs", "state", "result", "error", "retry_count", "max_retries"),
    *("next_retry_at", "scheduled_at", "started_at", "completed_at", "created_at", "worker_id"),
    *("locked_until", "timeout_seconds", "priority", "tags"),
]


@pytest.fixture
async def backend(postgres_url: str) -> AsyncIterator[Backend]:
    async with engines.open(postgres_url) as backend:
        await backend.run(backend.ops.migrate())
        await backend.run(backend.ops.publish_view())
        yield backend


def ask(url: str, sql: str) -> list[dict[str, Any]]:
    """Ask at a plain prompt."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        connection.execute("SET timezone = 'Asia/Kathmandu'")
        return connection.execute(sql.encode()).fetchall()


async def test_the_printed_statements_run(backend: Backend, postgres_url: str) -> None:
    worker = new_id()
    await backend.run(backend.ops.register(NewWorker(worker, lease=30)))
    outcomes = [
        Completed(b'{"sum":3}'),
        Completed(b"null"),
        Failed(TaskError("later", traceback="Traceback …")),
        Failed(TaskError("never", retriable=False)),
        None,
    ]
    tasks = [
        new_task(
            "add",
            {"x": 1, "text": "a\x00b"},
            priority=number,
            tags={"batch": "daily"},
            timeout_seconds=30,
            max_retries=5,
        )
        for number in range(len(outcomes))
    ]
    await backend.run(backend.ops.submit(tasks))
    claimed = (await backend.run(backend.ops.claim(Ask(worker, "r", 10)))).tasks
    for task in claimed:
        outcome = outcomes[task.level]
        if outcome is not None:
            await backend.run(backend.ops.settle([settlement(task, outcome, 2.0)]))
    waiting = [
        new_task("add", priority="low"),
        new_task("add", priority="critical", delay_seconds=3600),
    ]
    await backend.run(backend.ops.submit(waiting))

    listed, failed, average = (ask(postgres_url, sql) for sql in DIRECT_ACCESS.strip().splitlines())
    assert [str(row["id"]) for row in listed] == [waiting[1].task_id, waiting[0].task_id]
    assert list(listed[0]) == COLUMNS
    assert failed == [{"count": 2}]
    ((mean,),) = (row.values() for row in average)
    assert abs(mean - timedelta(seconds=2)) < timedelta(milliseconds=1)

    ended = ask(postgres_url, "SELECT * FROM tasks WHERE state <> 'pending'")
    rows = {row["priority"]: row for row in ended}
    assert [rows[number]["state"] for number in range(5)] == [
        "completed",
        "completed",
        "failed",
        "failed",
        "running",
    ]
    assert [rows[number]["result"] for number in range(3)] == [
        {"value": {"sum": 3}},
        {"value": None},
        None,
    ]
    assert [rows[number]["error"] for number in (0, 2, 3)] == [None, "Traceback …", "never"]
    now = datetime.now(UTC)
    assert rows[2]["next_retry_at"] > rows[2]["created_at"]
    assert rows[2]["completed_at"] is None
    assert rows[3]["completed_at"] is not None
    assert (rows[4]["worker_id"], rows[0]["worker_id"]) == (worker, None)
    assert now < rows[4]["locked_until"] < now + timedelta(seconds=40)
    assert rows[0]["locked_until"] is None
    assert rows[0]["tags"] == {"batch": "daily"}
    assert (rows[0]["retry_count"], rows[0]["max_retries"], rows[0]["timeout_seconds"]) == (
        0,
        5,
        30,
    )
    (seen,) = await backend.run(backend.ops.get([tasks[0].task_id]))
    assert seen is not None
    for column in ("created_at", "started_at", "completed_at"):
        assert rows[0][column] == getattr(seen, column), column
    assert rows[0]["scheduled_at"] == seen.run_at


async def test_what_people_write_does_not_break_it(backend: Backend, postgres_url: str) -> None:
    """A zero character, which PostgreSQL has no text for, anywhere in it."""
    worker = new_id()
    await backend.run(backend.ops.register(NewWorker(worker)))
    odd = '\x00 \\u0000 " Ω 🐍'
    await backend.run(backend.ops.submit([new_task("add", {odd: odd}, max_retries=0)]))
    (task,) = (await backend.run(backend.ops.claim(Ask(worker, "r", 10)))).tasks
    error = TaskError(odd, traceback=odd)
    await backend.run(backend.ops.settle([settlement(task, Failed(error))]))
    await backend.run(backend.ops.submit([new_task("add", tags={"note": "Ω"})]))
    (row, other) = ask(postgres_url, "SELECT *, kwargs::text AS sent FROM tasks ORDER BY id")
    assert json.loads(row["sent"]) == {odd: odd}
    assert row["error"] == '\ufffd \\ufffd " Ω 🐍'
    assert other["tags"] == {"note": "Ω"}


GRANTED = """
SELECT FROM information_schema.role_table_grants
WHERE table_schema = 'public' AND table_name = 'tasks' AND grantee = 'PUBLIC'
"""


def count(url: str, relation: str, **options: Any) -> int:
    with psycopg.connect(url, **options) as connection:
        ((found,),) = connection.execute(f"SELECT count(*) FROM {relation}".encode()).fetchall()
    return int(found)


async def test_the_view_can_be_published_again(backend: Backend, postgres_url: str) -> None:
    await backend.run(backend.ops.publish_view())
    await backend.run(backend.ops.submit([new_task("add")]))
    assert count(postgres_url, "tasks") == count(postgres_url, "fairlane.tasks") == 1


async def test_a_table_of_that_name_stays(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE tasks (mine int)")
    async with engines.open(postgres_url) as backend:
        await backend.run(backend.ops.migrate())
        with pytest.raises(StoreUnusable, match="Nothing was changed"):
            await backend.run(backend.ops.publish_view())
    assert count(postgres_url, "tasks") == 0


async def test_nothing_is_published_before_there_is_a_store(postgres_url: str) -> None:
    async with engines.open(postgres_url) as backend:
        with pytest.raises(SchemaMissing):
            await backend.run(backend.ops.publish_view())


async def test_a_role_may_read_the_view_alone_and_a_migration_keeps_that(
    backend: Backend, postgres_url: str
) -> None:
    role = f"reporting_{new_id().replace('-', '')}"
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT SELECT ON public.tasks TO {role}".encode())
        connection.execute("GRANT SELECT ON public.tasks TO PUBLIC")
    await backend.run(backend.ops.submit([new_task("add")]))
    try:
        assert count(postgres_url, "tasks", user=role) == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            count(postgres_url, "fairlane.tasks", user=role)
        with psycopg.connect(postgres_url) as connection:
            # As if the last migration changed the view that it reads.
            connection.execute("UPDATE fairlane.fairlane_schema SET version = version - 1")
        with pytest.MonkeyPatch.context() as patch:
            again = "DROP VIEW fairlane.tasks; CREATE VIEW fairlane.tasks AS SELECT 1 AS id;"
            patch.setattr(schema, "STEPS", [*schema.STEPS[:-1], again])
            await backend.run(backend.ops.migrate())
        assert count(postgres_url, "tasks", user=role) == 1
        assert count(postgres_url, f"({GRANTED}) AS granted") == 1
    finally:
        with psycopg.connect(postgres_url) as connection:
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())
