"""Probes: a worker tells how it is, also while its event loop is blocked."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

import pytest

from fairlane.core.errors import InvalidWorker, StoreUnavailable
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE, application, working


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


async def ask(port: int, path: str = "/health") -> tuple[int, dict[str, Any]]:
    def get() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}{path}", timeout=PATIENCE
            ) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    status, body = await asyncio.to_thread(get)
    return status, json.loads(body) if body.startswith(b"{") else {}


async def answers(port: int, wanted: str) -> tuple[int, dict[str, Any]]:
    """The answer once it tells this status."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(urllib.error.URLError):  # it does not listen yet
                status, told = await ask(port)
                if told["status"] == wanted:
                    return status, told
            await asyncio.sleep(0.02)


async def test_a_worker_tells_that_it_is_well(memory: World, port: int) -> None:
    app = application(memory)

    @app.task
    async def noop() -> None: ...

    async with working(app, health_port=port):
        status, told = await answers(port, "active")
        assert status == 200
        (worker,) = await memory.run(memory.ops.workers())
        assert told["worker_id"] == worker.worker_id
        assert told["load"] == 0
        assert (await ask(port, "/"))[0] == 404
    with pytest.raises(OSError, match="refused"):
        await ask(port)


async def test_a_blocked_event_loop_is_noticed(memory: World, port: int) -> None:
    app = application(memory)
    found: list[int] = []

    @app.task
    async def block() -> None:
        asking = asyncio.get_running_loop().run_in_executor(None, watch)
        while not found:
            time.sleep(0.01)  # noqa: ASYNC251 (that is the fault)
        await asking

    def watch() -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
            except urllib.error.HTTPError as error:
                found.append(error.code)
                return
            time.sleep(0.02)
        found.append(0)

    async with working(app, health_port=port, lag_limit=0.2):
        handle = await block.submit()
        await handle.result(timeout=PATIENCE)
        assert found == [503]
        assert (await answers(port, "active"))[0] == 200


async def test_a_store_that_is_away_is_no_reason_to_restart_it(
    memory: World, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(memory)
    away = True
    run = app.run

    async def troubled(op: Any) -> Any:
        if away and op.name == "register":
            raise StoreUnavailable
        return await run(op)

    monkeypatch.setattr(app, "run", troubled)

    @app.task
    async def noop() -> None: ...

    async with working(app, health_port=port):
        assert (await answers(port, "waiting"))[0] == 200
        away = False
        assert (await answers(port, "active"))[0] == 200


async def test_a_port_that_is_taken_is_named(memory: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        worker = Worker(application(memory), Config(health_port=port))
        with pytest.raises(InvalidWorker, match=f"port {port}: Address already in use"):
            await worker.run(signals=False)


async def test_rubbish_does_no_harm(memory: World, port: int) -> None:
    app = application(memory)

    @app.task
    async def noop() -> None: ...

    async with working(app, health_port=port):
        await answers(port, "active")
        for rubbish in (
            b"",
            b"\x00" * 1_000,
            b"GET /health\r\n\r\n",
            b"POST /health HTTP/1.1\r\n\r\n",
        ):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(rubbish)
            writer.close()
            await writer.wait_closed()
        assert (await ask(port))[0] == 200
