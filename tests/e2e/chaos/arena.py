"""A store, a client, worker processes, and a judge at the end."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from fairlane import Fairlane
from fairlane.core.errors import StoreError
from fairlane.core.states import LIVE
from fairlane.core.tally import census
from tests.e2e.chaos.load import Client
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.chaos.workflow_load import WorkflowClient
from tests.e2e.history.checker import INVARIANTS, check, verdict
from tests.e2e.history.dump import Dump, Journal, dump
from tests.e2e.history.holding import Watch
from tests.e2e.history.lines import End, Healed, History, Recorder, Start, decoded
from tests.e2e.history.terms import Terms
from tests.fixtures.counters import tallies

FULL = os.environ.get("FAIRLANE_TESTS") == "full"
"""RELIABILITY's quantities, instead of a short form of each."""

LEASE = 3.0
PATIENCE = 60.0
"""How long to wait for what has to come: no test depends on how fast it does."""
LOOK_SECONDS = 0.02
_MEANT = re.compile(
    r"^.* failed, attempt \d+: (?:MemoryError: |.*as asked).*\n(?:  .*\n)+", re.MULTILINE
)
"""What a worker logs of a handler that used up its memory, or was asked to fail for good; no other
handler here gives a reason to log its traceback."""


async def until(
    condition: Callable[[], Awaitable[bool]], what: str, patience: float = PATIENCE
) -> None:
    """Wait for something that happens in another process; a store that is away is waited for."""
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    if await condition():
                        return
                except StoreError:
                    pass
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"Within {patience:.0f} s it was not so: {what}") from None


class Seen:
    """What handlers have told so far, counted along."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._half = b""
        """A line of which only the beginning was there."""
        self.starts = 0
        self.ends = 0
        self.begun: dict[int, float] = {}
        """When a process last began something."""

    def look(self) -> Self:
        *whole, self._half = (self._half + self._file.read()).split(b"\n")
        for text in whole:
            line = decoded(text)
            if isinstance(line, Start):
                self.starts += 1
                self.begun[line.pid] = line.at
            elif isinstance(line, End):
                self.ends += 1
        return self

    def close(self) -> None:
        self._file.close()


class Arena:
    """Where one test takes place. `server`: what its workers are given in place of the store.

    `environment`: variables for the workers.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        server: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self._environment = environment
        self.app = Fairlane(url)
        self.folder = folder
        self.recorder = Recorder(folder / "clients.jsonl")
        self._submitting = Fairlane(url, patience=0.2)  # so that calls do fail in an outage
        self.client = Client(self._submitting, self.recorder)
        self.workflows = WorkflowClient(self._submitting, self.recorder)
        self._seen = Seen(folder / "handlers.jsonl")
        self._workers: list[WorkerProcess] = []
        self._journal = Journal(self.app.backend)
        self._watch = Watch(self.app.backend)
        self._following: asyncio.Task[None] | None = None

    def expect_rewinds(self) -> None:
        """Let the store go back in time."""
        self._journal.rewinds = True

    async def __aenter__(self) -> Self:
        await self.app.run(self.app.backend.ops.migrate())
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.discard()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self.app.aclose()
        await self._submitting.aclose()
        self.recorder.close()
        self._seen.close()
        if error is not None:
            sys.stderr.write(self.said[-10_000:])

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._journal.follow())
            group.create_task(self._watch.follow())

    @property
    def said(self) -> str:
        """What the workers have logged."""
        log = self.folder / "workers.log"
        return log.read_text(errors="replace") if log.exists() else ""

    # -- workers -----------------------------------------------------------------------------------

    def begin(
        self, *, concurrency: int = 4, lease: float = LEASE, grace: float = 30.0
    ) -> WorkerProcess:
        """A worker that is on its way."""
        flags = ("--concurrency", str(concurrency), "--lease", str(lease), "--grace", str(grace))
        worker = WorkerProcess(
            self.app,
            self.folder,
            self.recorder,
            *flags,
            store=self._server,
            environment=self._environment,
        )
        self._workers.append(worker)
        return worker

    async def worker(
        self, *, concurrency: int = 4, lease: float = LEASE, grace: float = 30.0
    ) -> WorkerProcess:
        """A worker that is there."""
        worker = self.begin(concurrency=concurrency, lease=lease, grace=grace)
        await self.ready(worker)
        return worker

    async def ready(self, *workers: WorkerProcess) -> None:
        async def there() -> bool:
            assert all(worker.running for worker in workers), "a worker ended by itself"
            return None not in [await worker.itself() for worker in workers]

        await until(there, "all workers are there")

    async def healed(self) -> None:
        """The trouble is over: all workers are soon at work again; how soon, the history says."""
        pids = tuple(worker.pid for worker in self._workers if worker.running)
        now = time.monotonic()
        self.recorder.write(Healed, pids=pids)

        async def all_at_work() -> bool:
            begun = self._seen.look().begun
            return all(begun.get(pid, 0.0) > now for pid in pids)

        await until(all_at_work, "every worker has begun something")

    def open(self, gate: str) -> None:
        """Let handlers go on that wait for it."""
        (self.folder / gate).touch()

    async def prepare_effects(self) -> None:
        """A table of the application's own, for handlers that complete in a transaction."""
        create = "CREATE TABLE effects (task_id text)"
        if self.sqlite is not None:
            with closing(sqlite3.connect(self.sqlite)) as connection:
                connection.execute(create)
        else:
            with psycopg.connect(self.app.url, autocommit=True) as session:
                session.execute(create)

    @property
    def remote(self) -> bool:
        """Whether workers know a server in place of the store."""
        return self._server is not None

    @property
    def sqlite(self) -> Path | None:
        """The file that the store is, if it is one."""
        scheme, _, path = self.app.url.partition(":///")
        return Path(path) if scheme == "sqlite" else None

    # -- what happens ------------------------------------------------------------------------------

    def history(self) -> History:
        return History.read(self.folder / "clients.jsonl", self.folder / "handlers.jsonl")

    @property
    def starts(self) -> int:
        """How many runs have begun since the test has."""
        return self._seen.look().starts

    async def begun(self, runs: int) -> None:
        """Until so many runs have begun since the test has."""

        async def enough() -> bool:
            return self.starts >= runs

        await self._until(enough, f"{runs} runs have begun")

    async def ended(self, more: int) -> None:
        """Until so many more runs have come to their end."""
        enough_ends = self._seen.look().ends + more

        async def enough() -> bool:
            return self._seen.look().ends >= enough_ends

        await self._until(enough, f"{more} more runs have ended")

    async def drained(self, patience: float = 2 * LEASE + PATIENCE) -> None:
        """Until nothing is left to do."""

        async def nothing_left() -> bool:
            counted = census(await self.app.run(tallies(self.app.backend.ops)))
            return not any(counted[state] for state in LIVE)

        await self._until(nothing_left, "everything has ended", patience)

    async def _until(
        self, condition: Callable[[], Awaitable[bool]], what: str, patience: float = PATIENCE
    ) -> None:
        """Wait; if it was in vain, tell what is left."""
        try:
            await until(condition, what, patience)
        except AssertionError as error:
            raise AssertionError(f"{error}; {await self._left()}") from None

    async def _left(self) -> str:
        """What has not ended, by the counters and by the tasks themselves."""
        ops = self.app.backend.ops
        counted = census(await self.app.run(tallies(ops)))
        # Not by a filter: a page looks at so many tasks only, and those that are stuck are old.
        found = await self.dump()
        stuck = [str(each) for each in INVARIANTS["I21"](self.history(), found, Terms())]
        tasks = [
            f"{each.task_id} {each.status} of {each.assigned_worker_id}, attempt {each.attempt}, "
            f"started {each.started_at}, updated {each.updated_at}"
            for each in found.tasks.values()
            if each.status in LIVE
        ]
        workers = [each.worker_id for each in await self.app.run(ops.workers())]
        # Where a counter is wrong, the journal says what it should have counted.
        moves: Counter[tuple[int, int]] = Counter()
        for key, times, _ in await self.app.run(tallies(ops)):
            moves[key.source, key.target] += times
        verbs = Counter(event.verb for event in await self._journal.events())
        return (
            f"{stuck}, counted {counted}, there are {tasks}, workers {workers}, "
            f"transitions counted {dict(moves)}, told {dict(verbs)}"
        )

    async def dump(self, effects: str | None = None) -> Dump:
        """The store as it stands, and what was seen of it."""
        if self._following is not None and self._following.done():
            self._following.result()  # it ends by an error only: then nothing was seen since
        return await dump(self.app, self._journal, effects, self._watch.spells)

    async def judged(
        self, terms: Terms, effects: str | None = None, without: Collection[str] = ()
    ) -> tuple[History, Dump]:
        """Everything that is known, none of it wrong, and nothing took a worker by surprise.

        `without`: invariants that cannot hold after what was done to the store.
        """
        assert "Traceback" not in _MEANT.sub("", self.said)
        found = await self.dump(effects)
        history = self.history()
        violations = check(history, found, terms, without)
        told = verdict(history, found, violations)
        sys.stdout.write(told + "\n")
        assert not violations, told
        return history, found
