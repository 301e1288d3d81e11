"""What only SQLite has to take care of: numbers that are given again, and statements that must not
read more than they need."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlane.core import limits
from fairlane.core.flow import perform
from fairlane.core.ids import new_ids
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Unique
from fairlane.engines.sqlite import claim, deletion, dependents, find, overview
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from tests.conftest import Servers
from tests.fixtures.stores import World, opened, settlement

AT_ONCE = Retention(0, 0, 0, 0, 0, 0)


@pytest.fixture
async def store(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    async with opened("sqlite-file", servers, tmp_path) as world:
        yield world


def rows(store: World, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(store.url.removeprefix("sqlite:///"))) as db:
        return db.execute(sql).fetchall()


async def test_an_expiry_does_not_strike_another_task_of_the_same_number(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1_000)
    first = await store.submit(expires_at=soon)
    await store.run(store.ops.cancel([first]))
    await store.run(store.ops.delete([first]))
    second = await store.submit()
    assert rows(store, "SELECT number, task_id FROM content") == [(1, second)]
    await store.advance(2_000)
    assert (await store.claim_one(await store.worker())).task_id == second


async def test_an_emptied_journal_goes_on_counting(store: World) -> None:
    task_id = await store.submit()
    tail = await store.run(store.ops.tail())
    await store.run(store.ops.cancel([task_id]))
    await store.run(store.ops.prune(AT_ONCE))
    gone = await store.run(store.ops.events(None, 10))
    assert (gone.events, gone.reset) == ([], False)
    missed = await store.run(store.ops.events(tail, 10))
    assert (missed.events, missed.reset) == ([], True)
    assert missed.cursor == gone.cursor == await store.run(store.ops.tail())
    assert not (await store.run(store.ops.events(gone.cursor, 10))).reset
    again = await store.submit()
    seen = await store.run(store.ops.events(gone.cursor, 10))
    assert [event.task_id for event in seen.events] == [again]
    assert not seen.reset
    assert (await store.run(store.ops.events(tail, 10))).reset


async def test_a_journal_is_emptied_from_its_old_end(store: World) -> None:
    for _ in range(limits.BATCH + 10):
        await store.submit()
    assert (await store.run(store.ops.prune(AT_ONCE))).more
    left = await store.run(store.ops.events(None, 100))
    assert len(left.events) == 10
    await store.run(store.ops.prune(AT_ONCE))
    assert (await store.run(store.ops.events(None, 100))).events == []


async def test_nothing_remains_of_bonds_and_keys(store: World) -> None:
    """Whichever way parents and children end."""
    worker = await store.worker()
    ids = new_ids(5)
    await store.submit_all(
        [
            new_task("a", task_id=ids[0], unique=True),
            new_task("b", task_id=ids[1], depends_on=ids[:1], unique=True),
            new_task(
                "c", task_id=ids[2], depends_on=ids[:2], unique=Unique(states=frozenset(State))
            ),
            new_task("d", task_id=ids[3], depends_on=ids[1:2], on_parent_failure="continue"),
            new_task("e", task_id=ids[4], depends_on=ids[:4]),
        ]
    )
    await store.run(store.ops.replay([ids[4]]))
    fatal = Failed(TaskError("no", retriable=False))
    for task in await store.claim(worker):
        await store.settle(task, fatal)
    assert rows(store, "SELECT * FROM bonds") == []
    assert rows(store, "SELECT * FROM ended_parents") == []
    assert rows(store, "SELECT task_id FROM uniques") == [(ids[2],)]
    assert await store.state(ids[3]) is State.QUEUED
    await store.run(store.ops.delete(ids))
    assert rows(store, "SELECT * FROM uniques") == []


async def test_completions_look_for_nothing_where_nothing_waits(store: World) -> None:
    """One statement asks whether there is anything to look for; the rest is what it always was."""
    await store.submit()
    task = await store.claim_one(await store.worker())
    seen: list[str] = []
    with closing(sqlite3.connect(store.url.removeprefix("sqlite:///"))) as db:

        def call(request: Execute | ExecuteMany) -> sqlite3.Cursor:
            seen.append(request.sql)
            if isinstance(request, Execute):
                return db.execute(request.sql, request.parameters)
            return db.executemany(request.sql, request.rows)

        perform(store.ops.settle([settlement(task)]).flow(), call)
    names = {sql: name for name, sql in dependents.SQL.items()}
    assert [names[sql] for sql in seen if sql in names] == ["concerns"]


@pytest.mark.parametrize("verb", [claim, deletion, dependents, find, overview])
async def test_no_statement_reads_all_tasks(store: World, verb: object) -> None:
    """None of them scans a table that grows with the number of tasks."""
    statements: dict[str, str] = verb.SQL  # type: ignore[attr-defined]
    grows = re.compile(r"SCAN (content|task|outcome|ready|waiting|attempts|idempotency_keys)\b")
    for name, sql in statements.items():
        most = max([int(n) for n in re.findall(r"\?(\d)", sql)], default=sql.count("?"))
        with closing(sqlite3.connect(store.url.removeprefix("sqlite:///"))) as db:
            plan = db.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * most).fetchall()
        assert [step[3] for step in plan if grows.match(step[3])] == [], name


async def test_tasks_that_wait_for_parents_do_not_delay_a_claim(store: World) -> None:
    """They have no time at which they are due, and are passed over as one."""
    parent = await store.submit(delay_seconds=1_000)
    await store.submit_all([new_task("child", depends_on=[parent]) for _ in range(100)])
    grant = await store.ask(await store.worker())
    assert grant.tasks == []
    assert grant.next_due_in == pytest.approx(1_000, abs=10)
