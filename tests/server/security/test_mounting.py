"""The server within somebody else's application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from fairlane import Fairlane
from fairlane.core.states import State
from fairlane.server import create_app, lifespan
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.http.kit import Client, listening
from tests.server.kit import application
from tests.server.security.kit import new_token

TASK = b'{"task_type": "work", "parameters": {}}'

Host = Callable[[Router, Any], ASGIApp]


def starlette(mounted: Router, life: Any) -> ASGIApp:
    return Starlette(routes=[Mount("/queue", app=mounted)], lifespan=life)


def fastapi(mounted: Router, life: Any) -> ASGIApp:
    app = FastAPI(lifespan=life)

    @app.get("/own")
    async def own() -> str:
        return "own"

    app.mount("/queue", mounted)
    return app


@asynccontextmanager
async def served(asgi: ASGIApp) -> AsyncIterator[Callable[..., Any]]:
    """Ask an application: the status and the body."""
    async with listening(asgi) as port:
        client = Client(*await asyncio.open_connection("127.0.0.1", port))

        async def ask(
            method: str, path: str, body: bytes = b"", **headers: str
        ) -> tuple[int, bytes]:
            sent = {"host": f"127.0.0.1:{port}", "content-length": str(len(body)), **headers}
            lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {sent[name]}" for name in sent)]
            head = "\r\n".join([*lines, "content-type: application/json", "", ""])
            reply = await client.ask(head.encode() + body)
            return reply.status, reply.body

        try:
            yield ask
        finally:
            await client.close()


@pytest.fixture
async def world(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    async with opened("sqlite-memory", servers, tmp_path) as found:
        yield found


@pytest.mark.parametrize("host", [starlette, fastapi])
@pytest.mark.parametrize("alive", [True, False], ids=["lifespan", "no lifespan"])
async def test_under_a_prefix(host: Host, alive: bool, world: World) -> None:
    app: Fairlane = application(world)
    mounted = create_app(app)

    @asynccontextmanager
    async def life(_: object) -> AsyncIterator[None]:
        async with lifespan(mounted):
            yield

    async with served(host(mounted, life if alive else None)) as ask:
        assert (await ask("POST", "/queue/api/v1/tasks", TASK))[0] == 201
        assert (await ask("GET", "/queue/healthz"))[0] == 200
        assert (await ask("GET", "/queue/nothing"))[0] == 404
        assert b'href="openapi.json"' in (await ask("GET", "/queue/docs"))[1]
        if host is fastapi:
            assert await ask("GET", "/own") == (200, b'"own"')
        # What guards it goes along.
        assert (await ask("GET", "/queue/api/v1/queues", host="evil.example"))[0] == 421
        evil = "http://evil.example"
        assert (await ask("POST", "/queue/api/v1/tasks", TASK, origin=evil))[0] == 403
    assert await world.depth() == 1
    if not alive:  # nobody told it to stop, so that is up to the test
        async with lifespan(mounted):
            pass
    background = [
        task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()
    ]
    assert background == []


@pytest.mark.parametrize("prefix", ["/queue", "/a b", "/x;y"])
async def test_the_cookie_is_for_the_prefix(prefix: str, world: World) -> None:
    _, secret = await new_token(world, "read")
    mounted = create_app(application(world))
    async with listening(Starlette(routes=[Mount(prefix, app=mounted)])) as port:
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        for method in ("POST", "DELETE"):
            body = b'{"token": "%s"}' % secret.encode() if method == "POST" else b""
            lines = [
                f"{method} {quote(prefix)}/auth/session HTTP/1.1",
                f"host: 127.0.0.1:{port}",
                f"origin: http://127.0.0.1:{port}",
                "content-type: application/json",
                f"content-length: {len(body)}",
            ]
            reply = await client.ask("\r\n".join([*lines, "", ""]).encode() + body)
            assert f"; Path={quote(prefix)}; " in reply.headers["set-cookie"]
        await client.close()
    async with lifespan(mounted):
        pass


async def test_under_a_prefix_that_looks_like_a_path_of_its_own(world: World) -> None:
    mounted = create_app(application(world))
    async with served(Starlette(routes=[Mount("/api", app=mounted)])) as ask:
        assert (await ask("POST", "/api/v1/tasks", TASK))[0] == 404
        assert (await ask("POST", "/api/api/v1/tasks", TASK))[0] == 201
    async with lifespan(mounted):
        pass
    assert await world.depth() == 1


async def test_it_opens_the_store_with_the_first_request_and_follows_inline(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with Fairlane(f"sqlite:///{path}") as app:
        mounted = create_app(app)
        assert not path.exists()
        async with served(mounted) as ask:
            assert (await ask("POST", "/api/v1/tasks", TASK))[0] == 201
            assert path.exists()
            with app.inline():
                for _ in range(2):
                    assert (await ask("POST", "/api/v1/tasks", TASK))[0] == 201
                assert (await app.stats()).by_status[State.QUEUED] == 2
            assert (await app.stats()).by_status[State.QUEUED] == 1
        async with lifespan(mounted):
            pass
