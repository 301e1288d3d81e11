"""A store that was dumped and restored into another cluster, where transaction ids begin again."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.model import Events
from fairlane.core.retention import Retention
from fairlane.core.submission import new_task
from tests.conftest import Servers
from tests.fixtures.servers import PostgresServer, postgres, postgres_installations

_TRANSACTIONS = """
DO $$ BEGIN
    FOR i IN 1..20000 LOOP
        PERFORM pg_current_xact_id();
        COMMIT;
    END LOOP;
END $$
"""
"""Takes more transaction ids than a new cluster has given away."""


@pytest.fixture(scope="module")
def new_cluster() -> Iterator[PostgresServer]:
    with postgres() as server:
        yield server


class Restored(NamedTuple):
    url: str
    backend: Backend
    tail: str
    """A cursor at the end of the old journal."""
    kept: list[str]
    """The tasks of the entries that the old journal had."""


@pytest.fixture
async def restored(servers: Servers, new_cluster: PostgresServer) -> AsyncIterator[Restored]:
    """A store whose journal was trimmed in its old cluster, and still has entries."""
    source = servers.postgres("newest").new_database()
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute(_TRANSACTIONS)
    async with engines.open(source) as old:
        await old.run(old.ops.migrate())
        await submit(old)
        await old.run(old.ops.shift_clock(3_600.0))
        kept = [await submit(old), await submit(old)]
        await old.run(old.ops.prune(Retention(journal=1_800)))
        tail = await old.run(old.ops.tail())
    target = new_cluster.new_database()
    copy(source, target)
    async with engines.open(target) as backend:
        yield Restored(target, backend, tail, kept)


def copy(source: str, target: str) -> None:
    folder = postgres_installations()[-1].bin
    dump: list[str | Path] = [folder / "pg_dump", "--schema=fairlane", source]
    dumped = subprocess.run(dump, check=True, capture_output=True).stdout
    restore: list[str | Path] = [folder / "psql", "--quiet", "--set=ON_ERROR_STOP=1", target]
    subprocess.run(restore, check=True, capture_output=True, input=dumped)


async def submit(backend: Backend) -> str:
    (accepted,) = await backend.run(backend.ops.submit([new_task("work")]))
    return accepted.task_id


async def events(backend: Backend, after: str | None) -> Events:
    return await backend.run(backend.ops.events(after, 100))


def tasks(found: Events) -> list[str | None]:
    return [event.task_id for event in found.events]


async def test_new_events_are_delivered(restored: Restored) -> None:
    backend = restored.backend
    tail = await backend.run(backend.ops.tail())
    first = await submit(backend)
    news = await events(backend, tail)
    assert (tasks(news), news.reset) == ([first], False)
    second = await submit(backend)
    more = await events(backend, news.cursor)
    assert (tasks(more), more.reset) == ([second], False)
    end = await events(backend, more.cursor)
    assert (end.events, end.cursor, end.reset) == ([], more.cursor, False)


async def test_a_cursor_of_the_old_cluster_is_reset(restored: Restored) -> None:
    backend = restored.backend
    found = await events(backend, restored.tail)
    assert found.reset
    assert tasks(found) == restored.kept
    new = await submit(backend)
    news = await events(backend, found.cursor)
    assert (tasks(news), news.reset) == ([new], False)


async def test_events_of_the_old_cluster_are_kept_and_trimmed(restored: Restored) -> None:
    backend = restored.backend
    new = await submit(backend)
    assert tasks(await events(backend, None)) == [*restored.kept, new]
    await backend.run(backend.ops.shift_clock(3_600.0))
    newest = await submit(backend)
    await backend.run(backend.ops.prune(Retention(journal=1_800)))
    found = await events(backend, None)
    assert tasks(found) == [newest]
    late = await events(backend, restored.tail)
    assert (tasks(late), late.reset) == ([newest], True)


async def test_several_processes_may_find_it_restored(restored: Restored) -> None:
    url = restored.url
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(engines.open(url)) for _ in range(4)]
        found = await asyncio.gather(*(events(other, restored.tail) for other in others))
        assert [(tasks(each), each.reset) for each in found] == [(restored.kept, True)] * 4
