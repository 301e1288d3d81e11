"""A real server under load while its engine is away, or while one of its processes is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.history.terms import Terms
from tests.e2e.http_load import HttpLoad, Seen
from tests.fixtures.process import gone
from tests.fixtures.servers import postgres, redis
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World
from tests.server.http.kit import Client

OUTAGE_SECONDS = 20.0 if FULL else 2.0
LONGEST_ANSWER = 3.0
"""A refusal comes within a second; the rest is for a busy machine."""
RECOVERY_SECONDS = 10.0
KILLS = 10 if FULL else 3
PATIENCE = 60.0

pytestmark = pytest.mark.timeout(600 if FULL else 110)

Away = Callable[[], AbstractContextManager[None]]


# --- The engine is away ---------------------------------------------------------------------------


async def test_postgres_is_stopped_and_started(tmp_path: Path) -> None:
    with postgres(settings={}) as engine:  # its own defaults: what is committed is on disk

        @contextmanager
        def away() -> Iterator[None]:
            engine.stop()
            yield
            engine.start()

        await outage(engine.new_database(), tmp_path, away)


async def test_postgres_is_frozen(tmp_path: Path) -> None:
    with postgres(settings={}) as engine:
        await outage(engine.new_database(), tmp_path, engine.frozen)


async def test_redis_is_frozen(tmp_path: Path) -> None:
    with redis(appendonly=True, settings={"appendfsync": "always"}) as engine:
        await outage(engine.url, tmp_path, engine.frozen)


async def test_redis_is_killed_and_started(tmp_path: Path) -> None:
    with redis(appendonly=True, settings={"appendfsync": "always"}) as engine:

        @contextmanager
        def away() -> Iterator[None]:
            engine.kill()
            yield
            engine.start()

        await outage(engine.url, tmp_path, away)


async def test_another_process_holds_the_lock_of_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "tasks.db"

    @contextmanager
    def away() -> Iterator[None]:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            yield
            holder.communicate()

    await outage(f"sqlite:///{file}", tmp_path, away, readable=True)


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


async def outage(url: str, folder: Path, away: Away, *, readable: bool = False) -> None:
    """The engine goes away under load and comes back: refusals come soon and say when to try again,
    the same process recovers by itself, and nothing that was accepted is lost.

    `readable`: what changes nothing works all the time.
    """
    async with Arena(url, folder) as arena:
        with ServerProcess(url, folder) as server:
            load = HttpLoad(server.port, arena.recorder)
            async with load.running():
                await load.more(50, PATIENCE)
                absence = away()
                await asyncio.to_thread(absence.__enter__)
                back = time.monotonic() + OUTAGE_SECONDS
                before = len(load.refusals)
                while time.monotonic() < back:
                    await load.refused(1, 2 * LONGEST_ANSWER)
                assert await status(server, get("/healthz")) == 200
                await asyncio.gather(*(met_soon(server, each, 503) for each in WRITES))
                for each in READS:
                    await met_soon(server, each, 200 if readable else 503)
                met = load.refusals[before:]
                await asyncio.to_thread(absence.__exit__, None, None, None)
                begun = time.monotonic()
                await load.more(50, RECOVERY_SECONDS)
                recovered = time.monotonic() - begun
            assert await status(server, get("/readyz")) == 200
            check_refusals(load.refusals)
        await arena.judged(Terms())
    longest = max(seen.seconds for seen in load.refusals)
    sys.stdout.write(
        f"{len(load.keys)} submissions, {len(met)} refusals while away {OUTAGE_SECONDS:.0f} s, the "
        f"longest after {longest:.1f} s; 50 more accepted {recovered:.1f} s after it was back\n"
    )
    assert load.broken == 0


def check_refusals(refusals: list[Seen]) -> None:
    assert refusals
    for seen in refusals:
        assert seen.reply.status == 503
        assert seen.reply.code in {"store_unavailable", "store_busy"}
        assert int(seen.reply.headers["retry-after"]) >= 1
        assert seen.seconds < LONGEST_ANSWER


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


def post(path: str, body: str) -> bytes:
    head = ("host: 127.0.0.1", "content-type: application/json", f"content-length: {len(body)}")
    return "\r\n".join([f"POST {path} HTTP/1.1", *head, "", body]).encode()


WRITES = (
    post("/api/v1/tasks", '{"task_type":"work","parameters":{}}'),
    post("/api/v1/tasks/cancel", '{"task_ids":["00000000-0000-7000-8000-000000000000"]}'),
    post("/api/tasks", '{"type":"work","payload":{}}'),
    post("/internal/workers/register", "{}"),
)
READS = (
    get("/readyz"),
    get("/api/v1/tasks"),
    get("/api/v1/events"),
    get("/api/v1/queue/stats"),
)


async def met_soon(server: ServerProcess, request: bytes, expected: int) -> None:
    begun = time.monotonic()
    found = await status(server, request)
    assert (found, time.monotonic() - begun < LONGEST_ANSWER) == (expected, True), request


async def status(server: ServerProcess, request: bytes) -> int:
    client = Client(*await asyncio.open_connection("127.0.0.1", server.port))
    try:
        return (await client.ask(request)).status
    finally:
        await client.close()


# --- A server process is killed -------------------------------------------------------------------


async def test_one_of_two_processes_is_killed(world: World, tmp_path: Path) -> None:
    """Who repeats a submission with its key ends with one task; the process comes back."""
    async with Arena(world.url, tmp_path) as arena:
        with ServerProcess(world.url, tmp_path, "--workers", "2") as server:
            load = HttpLoad(server.port, arena.recorder)
            async with load.running(16):
                kills = 0
                while kills < KILLS or not load.broken:
                    await all_there(server)
                    await load.more(100, PATIENCE)
                    await killed(server.children[kills % 2])
                    kills += 1
                await all_there(server)
                await load.more(100, PATIENCE)
        _, dump = await arena.judged(Terms())
        found = [task.idempotency_key for task in dump.tasks.values()]
        assert len(found) == len(load.keys)
        assert set(found) == load.keys
        assert load.refusals == []


async def killed(pid: int) -> None:
    """End a process as the kernel's OOM killer does."""

    async def ended() -> bool:
        return gone(pid)

    os.kill(pid, signal.SIGKILL)
    await until(ended, "the process is gone")


async def all_there(server: ServerProcess) -> None:
    """Until two processes serve."""

    async def two() -> bool:
        return len(server.children) == 2

    await until(two, "two processes serve")
