"""Fairlane with more or less of what tells of it, for `bench.costs`: each with a store of its own.

`off`: no journal, no counters. `books`: both, as always. `metrics`: a server beside it too, of
which `/metrics` is asked every second. `logs`: and each transition in a log of JSON.
"""

from __future__ import annotations

import asyncio
import os
import time
import urllib.request
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec
import psycopg
from redis import Redis

from bench.contest import engine_of
from bench.http import fairlane_server
from bench.peers.crew import Crew
from bench.peers.peer import URL, Command, module
from fairlane import Fairlane
from fairlane.core import limits
from fairlane.core.states import State
from fairlane.core.submission import new_task

CHOICES = ("off", "books", "metrics", "logs")
SCRAPE_SECONDS = 1.0
LAST = 100


class Burst(msgspec.Struct, frozen=True):
    """What one backlog took: tasks a second, and microseconds of CPU a task."""

    rate: float
    worker: float
    beside: float
    """Of the store's processes, and of the server's."""

    @property
    def cpu(self) -> float:
        return self.worker + self.beside


class Observed:
    """A worker that drains one backlog after the other."""

    def __init__(self, choice: str, url: str) -> None:
        self._choice = choice
        self._url = url
        self._app = Fairlane(url)
        self._stack = AsyncExitStack()
        self._server: list[int] = []
        self._done = 0
        self._last: list[str] = []
        self.scraped = 0

    def workers(self) -> Sequence[Command]:
        place = "bookless" if self._choice == "off" else "fairlane"
        logs = ["--log-format", "json", "--log-transitions"] if self._choice == "logs" else []
        return [module("fairlane", "worker", "--app", f"bench.peers.{place}:app", *logs)]

    async def finished(self) -> int:
        """Not asked of the counters, which may be off. Settlements go out one batch after the
        other, so the last ones come last; `drained` sees that it was so."""
        done = await self._completed(self._last)
        return self._done + done

    async def open(self) -> None:
        self._stack.push_async_callback(self._app.aclose)
        await self._app.run(self._app.backend.ops.pause(paused=True))
        if CHOICES.index(self._choice) >= CHOICES.index("metrics"):
            target = self._stack.enter_context(fairlane_server(self._url))
            assert target.process is not None
            self._server = [target.process]
            scraping = asyncio.create_task(self._scrape(f"{target.url}/metrics"))
            self._stack.push_async_callback(_cancelled, scraping)
        os.environ[URL] = self._url  # for the worker
        self._crew = self._stack.enter_context(Crew(self))

    async def close(self) -> None:
        await self._stack.aclose()

    async def drained(self, tasks: int) -> Burst:
        """Drain a backlog of so many."""
        ops, run = self._app.backend.ops, self._app.run
        ids: list[str] = []
        for _ in range(tasks // limits.BATCH):
            some = [new_task("noop", {"value": n}) for n in range(limits.BATCH)]
            ids += [task.task_id for task in await run(ops.submit(some))]
        before = self._worker(), self._beside()
        # All but the last ones are counted by their handlers.
        self._done, self._last = self._done + tasks - LAST, ids[-LAST:]
        began = time.monotonic_ns()
        await run(ops.pause(paused=False))
        end = await self._crew.done(self._done + LAST)
        after = self._worker(), self._beside()
        self._done += LAST
        self._last = []
        await run(ops.pause(paused=True))
        parts = range(0, tasks, limits.BATCH)
        found = [await self._completed(ids[at : at + limits.BATCH]) for at in parts]
        assert sum(found) == tasks, "the last ones were not the last"
        worker, beside = ((b - a) / tasks * 1e6 for a, b in zip(before, after, strict=True))
        return Burst(tasks / (end - began) * 1e9, worker, beside)

    async def _completed(self, task_ids: Sequence[str]) -> int:
        tasks = await self._app.run(self._app.backend.ops.get(task_ids))
        return sum(task is not None and task.status is State.COMPLETED for task in tasks)

    async def _scrape(self, address: str) -> None:
        while True:
            await asyncio.to_thread(_read, address)
            self.scraped += 1
            await asyncio.sleep(SCRAPE_SECONDS)

    def _worker(self) -> float:
        return sum(map(cpu_seconds, self._crew.pids()))

    def _beside(self) -> float:
        return sum(map(cpu_seconds, [*self._server, *_store_processes(self._url)]))


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, to the nanosecond; none if there is no such process."""
    with suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)  # the kernel's number of a process's clock
    return 0.0


def _store_processes(address: str) -> list[int]:
    """Those of a server that nobody else uses."""
    match engine_of(address):
        case "sqlite":
            return []
        case "postgres":
            with psycopg.connect(address) as connection:
                backend = connection.info.backend_pid
                main = _parent(backend)
            return [main, *(pid for pid in _children(main) if pid != backend)]
        case _:
            with Redis.from_url(address) as client:
                return [client.info("server")["process_id"]]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _read(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        answer.read()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
