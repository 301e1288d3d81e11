"""A store that is emptied below those who use it: FLUSHALL, DROP SCHEMA, a deleted file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from redis import Redis

from fairlane import Fairlane, engines
from fairlane.client import remaking
from fairlane.core.errors import NotAFairlaneStore, SchemaMissing, StoreError
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tokens import LOST_TOKENS, Scope, issued
from fairlane.server.config import ServerConfig
from tests.conftest import Servers
from tests.e2e.chaos.arena import until
from tests.fixtures.stores import KINDS, World, opened
from tests.server.kit import serving
from tests.worker.kit import ended, working


@pytest.fixture(params=[kind for kind in KINDS if kind != "sqlite-memory"])
async def store(
    request: pytest.FixtureRequest,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[World]:
    monkeypatch.setattr(remaking, "EMPTY_SECONDS", 0.2)
    async with opened(request.param, servers, tmp_path, patience=1.0) as world:
        yield world


def empty(url: str) -> None:
    """Take away everything, past Fairlane."""
    match urlsplit(url).scheme:
        case "sqlite":
            path = Path(urlsplit(url).path.removeprefix("/"))
            for end in ("", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        case "redis" | "unix":
            with Redis.from_url(url) as client:
                client.flushall()
        case _:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA fairlane CASCADE")


def damage(url: str) -> None:
    """Take away a part."""
    match urlsplit(url).scheme:
        case "sqlite":
            path = Path(urlsplit(url).path.removeprefix("/"))
            for end in ("", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            path.write_bytes(b"half of a store " * 1_000)
        case "redis" | "unix":
            with Redis.from_url(url) as client:
                client.delete("fairlane:meta", *client.keys("*meta*"))
        case _:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP TABLE fairlane.fairlane_schema, fairlane.content CASCADE")


async def persistently(app: Fairlane, type: str = "work") -> str:
    """Submit, and again until it is accepted."""
    found: list[str] = []

    async def accepted() -> bool:
        try:
            (answer,) = await app.run(app.backend.ops.submit([new_task(type)]))
        except StoreError:
            return False
        found.append(answer.task_id)
        return True

    await until(accepted, "the store accepts tasks again")
    return found[0]


async def test_it_is_made_again(store: World, caplog: pytest.LogCaptureFixture) -> None:
    async with Fairlane(store.url, patience=1.0) as app:
        await persistently(app)
        await asyncio.to_thread(empty, store.url)
        with pytest.raises(SchemaMissing):
            await app.run(app.backend.ops.submit([new_task("work")]))
        with caplog.at_level(logging.ERROR):
            task_id = await persistently(app)
        assert "was made again" in caplog.text
        (task,) = await app.run(app.backend.ops.get([task_id]))
        assert task is not None
        page = await app.run(app.backend.ops.audit(10))
        assert [entry.action for entry in page.entries] == ["store.remake"]
        assert await app.run(app.backend.ops.tokens()) == []


@pytest.mark.parametrize(("migrate", "remake"), [(True, False), (False, True)])
async def test_not_by_those_who_must_not(store: World, *, migrate: bool, remake: bool) -> None:
    async with Fairlane(store.url, patience=1.0, migrate=migrate, remake=remake) as app:
        await persistently(app)
        await asyncio.to_thread(empty, store.url)
        for _ in range(4):
            with pytest.raises(SchemaMissing):
                await app.run(app.backend.ops.submit([new_task("work")]))
            await asyncio.sleep(0.1)


async def test_not_by_those_who_have_never_seen_it_whole(store: World) -> None:
    await asyncio.to_thread(empty, store.url)
    async with engines.open(store.url, patience=1.0) as backend:
        for _ in range(4):
            with pytest.raises(SchemaMissing):
                await backend.run(backend.ops.submit([new_task("work")]))
            await asyncio.sleep(0.1)


async def test_what_is_damaged_is_left_alone(store: World) -> None:
    async with Fairlane(store.url, patience=1.0) as app:
        await persistently(app)
        await asyncio.to_thread(damage, store.url)
        for _ in range(4):
            with pytest.raises((NotAFairlaneStore, SchemaMissing)):
                await app.run(app.backend.ops.submit([new_task("work")]))
            await asyncio.sleep(0.1)
        with pytest.raises(NotAFairlaneStore):
            await app.run(app.backend.ops.version())


async def test_others_forget_what_they_knew_of_it(store: World) -> None:
    """One makes it again; to the other, its lanes had other numbers."""
    async with Fairlane(store.url, patience=1.0) as one, Fairlane(store.url, patience=1.0) as two:
        for type in ("first", "second", "third"):
            await persistently(two, type)
        await persistently(one)
        await asyncio.to_thread(empty, store.url)
        for type in ("third", "other", "second"):
            await persistently(one, type)
        for type in ("first", "second", "third"):
            task_id = await persistently(two, type)
            for app in (one, two):
                (task,) = await app.run(app.backend.ops.get([task_id]))
                assert task is not None
                assert task.type == type


async def test_a_worker_goes_on(store: World) -> None:
    app = Fairlane(store.url, patience=1.0)

    @app.task(name="work", concurrency=2)
    async def work() -> str:
        return "done"

    async with app, working(app, lease=2.0):
        before = await app.submit(work.prepare())
        assert (await ended(app, before.task_id)).status is State.COMPLETED
        await asyncio.to_thread(empty, store.url)
        task_id = await persistently(app)
        assert (await ended(app, task_id)).status is State.COMPLETED
        controls = await app.run(app.backend.ops.controls())
        assert controls.types["work"].concurrency == 2, "what the code declares is set again"


async def test_a_server_with_tokens_stays_closed(store: World) -> None:
    """Also after a restart, when nobody remembers that there were tokens."""
    token, _ = issued("admin", {Scope.ADMIN})
    await store.run(store.ops.put_token(token))
    async with Fairlane(store.url, patience=1.0) as app:
        world = World(app.backend, store.url, {})
        await app.run(app.backend.ops.tokens())
        async with serving(world, config=ServerConfig()) as api:
            reply = await api.ask("GET", "/api/v1/tasks")
            assert reply.status == 401
            await asyncio.to_thread(empty, store.url)

            async def made_again() -> bool:
                for headers in ({}, {"authorization": "Bearer fl_x"}):
                    reply = await api.ask("GET", "/api/v1/tasks", **headers)
                    assert reply.status in {401, 503}
                with suppress(StoreError):
                    tokens = await app.run(app.backend.ops.tokens())
                    return [each.name for each in tokens] == [LOST_TOKENS]
                return False

            await until(made_again, "the store was made again")
        async with serving(world, config=ServerConfig()) as api:
            assert (await api.ask("GET", "/api/v1/tasks")).status == 401
