"""Workers that know a server and no database: what is killed costs no more than anywhere else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from fairlane import State
from tests.e2e.chaos.arena import FULL, PATIENCE, Arena
from tests.e2e.chaos.workers import ROOT
from tests.e2e.history.terms import Terms

KILLS, RUNS_BETWEEN = (30, 300) if FULL else (2, 30)
RATE = 100.0 if FULL else 40.0
LEASE = 30.0
"""A server that is away for a moment, and a busy machine, must not pass for dead workers."""
SHORT_LEASE = 3.0

pytestmark = pytest.mark.timeout(3_600 if FULL else 120)


class Server:
    """A server that always comes back at the same address."""

    def __init__(self, store: str, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._environ = {**os.environ, "FAIRLANE_STORE": store}
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fairlane", "server", "--port", str(self._port)],
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urlopen(f"{self.address}/healthz", timeout=PATIENCE).close()
            except OSError:
                assert time.monotonic() < deadline, self._log.read_text()
                assert self._process.poll() is None, self._log.read_text()
                time.sleep(0.05)
            else:
                return

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(f"sqlite:///{tmp_path / 'tasks.db'}", tmp_path)
    yield server
    server.end()


@pytest.fixture
async def arena(server: Server, tmp_path: Path) -> AsyncIterator[Arena]:
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    async with Arena(store, tmp_path, server.address) as arena:
        server.start()
        yield arena


async def test_a_server_that_is_killed_costs_no_attempt(arena: Arena, server: Server) -> None:
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    async with arena.client.load(RATE, "on-loop", "on-thread"):
        for _ in range(KILLS):
            await arena.ended(RUNS_BETWEEN)
            # Runs that end while nobody is there to hear of it.
            await arena.client.submit_some(4, "on-loop", "on-thread", seconds=0.5)
            server.end()
            server.start()
            await arena.healed()
    await arena.drained()
    await _judged_unburnt(arena)


async def test_workers_are_restarted_in_good_order(arena: Arena) -> None:
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    async with arena.client.load(RATE, "on-loop", "in-process"):
        for _ in range(KILLS):
            await arena.ended(RUNS_BETWEEN)
            await workers.pop(0).stop()
            workers.append(await arena.worker(lease=LEASE))
    await arena.drained()
    await _judged_unburnt(arena)


async def test_what_a_killed_worker_held_is_done_by_another(arena: Arena) -> None:
    first = await arena.worker(concurrency=20, lease=SHORT_LEASE)
    await arena.client.submit_some(20, "on-loop", gate=str(arena.folder / "gate"))
    await arena.begun(20)
    await arena.worker(concurrency=20, lease=SHORT_LEASE)
    await first.kill()
    arena.open("gate-2")
    await arena.drained()
    _, dump = await arena.judged(Terms(lease=SHORT_LEASE))
    assert Counter(task.status for task in dump.tasks.values()) == {State.COMPLETED: 20}


async def _judged_unburnt(arena: Arena) -> None:
    _, dump = await arena.judged(Terms(lease=LEASE))
    for task in dump.tasks.values():
        outcomes = Counter(each.outcome for each in task.attempts)
        assert outcomes.keys() <= {"completed", "failed", "released", "cancelled"}, task
