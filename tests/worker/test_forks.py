"""Children that handlers fork do not become second workers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane import Fairlane
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.worker import forking
from tests.worker.kit import PATIENCE

ROOT = Path(__file__).parents[2]
HANDLERS = [
    forking.on_loop,
    forking.on_loop_waiting,
    forking.on_loop_in_a_task,
    forking.on_thread,
    forking.on_thread_raising,
    forking.on_thread_exiting,
    forking.in_process,
    forking.in_process_waiting,
]


@contextmanager
def worker(url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real one: what forks is the whole process."""
    command = [sys.executable, "-m", "fairlane", "worker", "--app", forking.TARGET, "--store", url]
    with log.open("wb") as said, subprocess.Popen(command, cwd=ROOT, stderr=said) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["sqlite-file", "postgres-newest", "redis"])
@pytest.mark.timeout(110)
async def test_a_child_that_returns_ends(kind: str, tmp_path: Path, servers: Servers) -> None:
    async with opened(kind, servers, tmp_path) as world, Fairlane(world.url) as app:
        forking.app.url = world.url  # as the worker has it
        log = tmp_path / "worker.log"
        with worker(world.url, log):
            for handler in HANDLERS:
                folder = tmp_path / handler.name
                folder.mkdir()
                task = await app.submit(handler.prepare(folder=str(folder)))
                # The run counts, and it is the parent's.
                assert await task.result(PATIENCE) == "parent", handler.name
                assert gone(folder / "child"), handler.name
                # No connection was disturbed.
                for n in range(5):
                    more = await app.submit(forking.double.prepare(n=n))
                    assert await more.result(PATIENCE) == 2 * n
            kept = await app.submit(forking.allowed.prepare(folder=""))
            assert await kept.result(PATIENCE) == 7
            pooled = await app.submit(forking.in_a_pool.prepare())
            assert await pooled.result(PATIENCE) is False
            (known,) = await app.run(app.backend.ops.workers())
            assert known.status == "active"
    said = log.read_text()
    assert "Traceback" not in said
    assert said.count("which a handler forked, has left the handler: it ends") == len(HANDLERS)


def gone(path: Path) -> bool:
    """Wait until the process named in a file has ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if path.exists() and not running(int(path.read_text())):
            return True
        time.sleep(0.02)
    return False


def running(pid: int) -> bool:
    """Return whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
