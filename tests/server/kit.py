"""A real server over a test's store, and a client of its JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from fairlane import Fairlane
from fairlane.server.app import site
from fairlane.server.config import ServerConfig
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.http.listening import bind
from fairlane.server.http.serving import serve
from fairlane.server.services import Services
from tests.fixtures.stores import World
from tests.server.http.kit import SECONDS, Reply, Running

JSON = "application/json"
CALM = ServerConfig(maintenance=False)
"""A server that does nothing by itself, so that a test says what happens."""


class Api(Running):
    """A server that runs, and the world behind it. Requests share a connection, one at a time."""

    def __init__(self, world: World, services: Services, port: int, stop: asyncio.Event) -> None:
        super().__init__(port, stop)
        self.world = world
        self.services = services

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """A request. A body that is not bytes is sent as JSON; `x_y="…"` is the header `x-y`."""
        client = self.clients[0] if self.clients else await self.connect()
        await client.send(self.request(method, path, body, **headers))
        return await client.answer(bodiless=method == "HEAD")

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> bytes:
        """The bytes of a request."""
        sent = {"host": f"127.0.0.1:{self.port}"}
        content = b""
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent |= {"content-type": JSON, "content-length": str(len(content))}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        return "\r\n".join([*head, "", ""]).encode("latin-1") + content

    async def get(self, path: str, **query: Any) -> Any:
        """What a GET that must succeed answers; lists in the query are repeated."""
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        return told(await self.ask("GET", target), 200)

    async def post(self, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        """What a POST that must succeed answers."""
        return told(await self.ask("POST", path, body, **headers), status)

    async def submit(self, type: str = "work", **fields: Any) -> str:
        """The id of a new task."""
        task = {"task_type": type, "parameters": {}, **fields}
        task_id: str = (await self.post("/api/v1/tasks", task, 201))["task_id"]
        return task_id


def told(reply: Reply, status: int) -> Any:
    """The JSON of an answer that must have this status."""
    assert reply.status == status, f"{reply.status}: {reply.body.decode()}"
    assert reply.headers["content-type"] == JSON
    return json.loads(reply.body)


def refused(reply: Reply, status: int, code: str) -> dict[str, Any]:
    """The details of a refusal that must be this one."""
    assert (reply.status, reply.code) == (status, code), reply.body.decode()
    details: dict[str, Any] = json.loads(reply.body)["error"]["details"]
    return details


def application(world: World) -> Fairlane:
    """An application on the world's own backend, which memory cannot do without."""
    app = Fairlane(world.url)
    app._connection.adopt(world.backend)
    return app


@asynccontextmanager
async def serving(world: World, config: ServerConfig = CALM) -> AsyncIterator[Api]:
    """Serve a world's store in this loop, on a free port of the loopback."""
    stop, ready = asyncio.Event(), asyncio.Event()
    sockets = bind("127.0.0.1", 0)
    asgi, services = site(world.backend, config)
    running = asyncio.create_task(
        serve(
            asgi,
            sockets,
            stop,
            ConnectionLimits(grace_seconds=5),
            on_ready=ready.set,
            on_stop=services.stopping.set,
        )
    )
    api = Api(world, services, sockets[0].getsockname()[1], stop)
    try:
        async with asyncio.timeout(SECONDS):
            await ready.wait()
        yield api
    finally:
        await api.leave()
        stop.set()
        async with asyncio.timeout(SECONDS):
            await running
