"""A store that loses its last seconds under workers that live on: a restored copy takes its place.

What was completed since then runs again. What was submitted since then stops wherever it runs. No
worker is restarted.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from redis import Redis

from fairlane import State
from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.history.terms import Terms
from tests.fixtures.servers import postgres, redis
from tests.fixtures.serving import ServerProcess

ROUNDS = 10 if FULL else 1
SLOTS, WAITING, LATER = 4, 3, 4
FORGOTTEN = ("I1", "I4", "I5", "I14")
"""What cannot hold when a store forgets: that what was accepted is there (I1; the test says so of
what the copy has), that no fence is issued twice (I4), that starts are counted (I5), and that two
runs under one fence are told apart (I14)."""


class Rewindable(NamedTuple):
    """A store of which a copy can be taken, and put back."""

    url: str
    save: Callable[[], None]
    restore: Callable[[], None]


@contextmanager
def redis_store(_: Path) -> Iterator[Rewindable]:
    with redis() as server:

        def save() -> None:
            with Redis.from_url(server.url) as client:
                client.save()

        def restore() -> None:
            server.kill()
            server.start()

        yield Rewindable(server.url, save, restore)


@contextmanager
def postgres_store(_: Path) -> Iterator[Rewindable]:
    with postgres() as server:
        data, copy = server.folder / "data", server.folder / "copy"

        def save() -> None:
            server.stop()
            shutil.rmtree(copy, ignore_errors=True)
            subprocess.run(["cp", "-a", data, copy], check=True)
            server.start()

        def restore() -> None:
            server.kill()
            shutil.rmtree(data)
            subprocess.run(["cp", "-a", copy, data], check=True)
            server.start()

        yield Rewindable(server.new_database(), save, restore)


@contextmanager
def sqlite_store(folder: Path) -> Iterator[Rewindable]:
    """Restored in place, by SQLite itself: the file stays the same."""
    path, copy = folder / "tasks.db", folder / "copy.db"

    def copied(source: Path, target: Path) -> None:
        with (
            (folder / "tasks.db.lock").open("rb") as lock,
            closing(sqlite3.connect(source, timeout=60)) as reading,
            closing(sqlite3.connect(target, timeout=60)) as writing,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            reading.backup(writing)

    yield Rewindable(f"sqlite:///{path}", lambda: copied(path, copy), lambda: copied(copy, path))


STORES = {"sqlite": sqlite_store, "postgres": postgres_store, "redis": redis_store}


@pytest.mark.timeout(3_600 if FULL else 180)
@pytest.mark.parametrize("remote", [False, True], ids=["direct", "over-http"])
@pytest.mark.parametrize("engine", STORES)
async def test_a_store_that_lost_its_last_seconds(
    engine: str, remote: bool, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        store = stack.enter_context(STORES[engine](tmp_path))
        address = (
            stack.enter_context(ServerProcess(store.url, tmp_path)).address if remote else None
        )
        arena = await stack.enter_async_context(Arena(store.url, tmp_path, address))
        workers = [arena.begin(concurrency=SLOTS), arena.begin(concurrency=SLOTS)]
        await arena.ready(*workers)
        ids: set[str] = set()
        for number in range(ROUNDS):
            ids |= await lose_seconds(arena, store, number)
        _, found = await arena.judged(Terms(), without=FORGOTTEN)
        assert {task.status for task in found.tasks.values()} == {State.COMPLETED}
        assert set(found.tasks) >= ids
        assert all(worker.running for worker in workers)


async def lose_seconds(arena: Arena, store: Rewindable, number: int) -> set[str]:
    """Return the tasks that the store knew when it was saved."""
    arena.expect_rewinds()
    gate, later = f"gate{number}", f"later{number}"
    runs = arena.starts
    ids = set(await submitted(arena, 2 * SLOTS + WAITING, gate))
    await arena.begun(runs + 2 * SLOTS)
    await asyncio.to_thread(store.save)
    for attempt in range(1, 10):
        arena.open(f"{gate}-{attempt}")
    await arena.drained()
    runs = arena.starts
    lost = set(await submitted(arena, LATER, later))
    await arena.begun(runs + LATER)
    await asyncio.to_thread(store.restore)
    # The tasks of those that run on, as far as they can be stopped, do not keep the others waiting.
    await arena.drained()

    async def nobody_runs_them() -> bool:
        alive = await arena.app.run(arena.app.backend.ops.workers())
        return sum(worker.load for worker in alive) == 0

    await until(nobody_runs_them, "no worker runs a task that the store does not know")
    assert not any(run.end for task_id in lost for run in arena.history().runs[task_id])
    return ids


async def submitted(arena: Arena, count: int, gate: str) -> list[str]:
    return await arena.client.submit_some(count, "on-loop", gate=str(arena.folder / gate))
