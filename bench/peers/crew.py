"""A queue's worker processes, for as long as they are measured."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bench.peers.marks import FOLDER, Seen
from bench.peers.peer import Command

DEADLINE_SECONDS = 60.0
STOP_SECONDS = 5.0


class Employer(Protocol):
    """Whose workers they are: see `Peer`."""

    def workers(self) -> Sequence[Command]: ...

    async def finished(self) -> int: ...


class Crew:
    """Starts a queue's workers, waits for what they do, and stops them."""

    def __init__(self, peer: Employer, *, none: bool = False) -> None:
        self._peer = peer
        self._none = none
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        marks = folder / "marks"
        marks.mkdir()
        self.seen = Seen(marks)
        self._log = folder / "log"
        os.environ[FOLDER] = str(marks)  # for the workers, and for one in this process
        self._stack.callback(os.environ.pop, FOLDER, None)
        if not self._none:
            with self._log.open("wb") as log:
                self._processes = [
                    subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
                    for command in self._peer.workers()
                ]
        return self

    async def begun(self, count: int) -> None:
        """Wait until so many handlers have begun."""
        until = time.monotonic() + DEADLINE_SECONDS
        while (seen := self.seen.count()) < count:
            if time.monotonic() > until:
                raise Stalled(f"{seen} of {count} tasks have run\n{self._told()}")
            if any(process.poll() is not None for process in self._processes):
                raise Stalled(f"A worker has ended by itself\n{self._told()}")
            await asyncio.sleep(0.001 if count < 1_000 else 0.005)

    async def done(self, count: int) -> int:
        """Wait until so many have run and their results are stored; answers when that was."""
        await self.begun(count)
        until = time.monotonic() + DEADLINE_SECONDS
        while (stored := await self._peer.finished()) < count:
            if time.monotonic() > until:
                raise Stalled(f"{stored} of {count} results are stored\n{self._told()}")
            await asyncio.sleep(0.002)
        return time.monotonic_ns()

    def pids(self) -> list[int]:
        """The workers."""
        return [process.pid for process in self._processes]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.terminate()
        until = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, until - time.monotonic()))
            with suppress(ProcessLookupError):  # whatever is left of it and its children
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._stack.close()

    def _told(self) -> str:
        return self._log.read_text(errors="replace")[-3_000:]


class Stalled(Exception):
    """Tasks did not run, or not once each."""
