"""Supervise several worker or server processes, or one that is restarted when its code changes.

A process that ends without the sign that it leaves on purpose is restarted, with growing pauses:
its exit code may be that of a handler. Signals are passed on; each child has its own process group,
so that Ctrl-C reaches it only from here. A child whose supervisor is gone stops by itself, because
its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairlane.cli.errors import EXIT_FAILURE, EXIT_USAGE, note
from fairlane.cli.supervised import LEFT, READY
from fairlane.worker.processes import signal_name

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
PROVEN_SECONDS = 60.0
"""After a process has run this long, its next pause is the shortest again."""
POLL_SECONDS = 0.5
RELOAD_GRACE = 2.0
"""How long a process may finish its tasks after its code has changed."""
SIGNS = 64


class Supervised:
    """A process, and the signs that it has given."""

    def __init__(self, process: Process, connection: socket.socket, version: int) -> None:
        self.process = process
        self.version = version
        """The version of the code that it runs."""
        self._connection = connection
        self._signs = b""

    @property
    def ready(self) -> bool:
        """Whether it has started its work."""
        return READY in self._received()

    @property
    def left(self) -> bool:
        """Whether it ends on purpose."""
        return LEFT in self._received()

    def send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def close(self) -> None:
        self._connection.close()

    def _received(self) -> bytes:
        with suppress(OSError):  # nothing new, or the process has ended
            self._signs += self._connection.recv(SIGNS)
        return self._signs


class Supervisor:
    """Keeps `count` processes of a command running until stopped.

    Those that have not ended `patience` seconds after the signal to stop are killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        count: int,
        watched: Path | None = None,
        *,
        kind: str = "worker",
        descriptors: Sequence[int] = (),
        patience: float | None = None,
    ) -> None:
        self._command = command
        self._environ = environ
        self._count = count
        self._watched = watched
        self._kind = kind
        self._descriptors = descriptors
        """Open files that every process inherits, such as listening sockets."""
        self._patience = patience
        self._processes: set[Supervised] = set()
        self._proven: int | None = None
        """The last version of the code with which a process has been ready."""
        self._stopping = asyncio.Event()
        self._signals = 0
        self._version = 0
        """The version of the code: grows with every change."""
        self._news = asyncio.Event()

    async def run(self) -> int:
        """Run until all processes have ended, and return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        watching = None if self._watched is None else loop.create_task(self._watch(self._watched))
        try:
            codes = await asyncio.gather(*(self._keep(each + 1) for each in range(self._count)))
        finally:
            if watching is not None:
                watching.cancel()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        return max(codes)

    async def _keep(self, number: int) -> int:
        """Run one process, and restart it."""
        pause = FIRST_PAUSE
        which = f"{self._kind.capitalize()} process {number}"
        while not self._stopping.is_set():
            version, began = self._version, time.monotonic()
            code, left = await self._run_once()
            if self._stopping.is_set():
                return EXIT_FAILURE if code == -signal.SIGKILL else max(0, code)
            if version != self._version:
                continue
            if left:
                note(f"{which} has left.")
                return 0
            # A wrong command line is wrong for all processes. But once one of them was ready, the
            # command line is right, and the code may come from a handler.
            if code == EXIT_USAGE and not self._settings_proven():
                if self._watched is None:
                    self._stop()
                    return code
                note("Waiting for a change.")
                await self._sleep(None)
                continue
            pause = FIRST_PAUSE if time.monotonic() - began > PROVEN_SECONDS else pause
            note(f"{which} {_end(code)}: it is restarted in {pause:g} s.")
            await self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return 0

    async def _run_once(self) -> tuple[int, bool]:
        """Run a process. Return its exit code, and whether it left on purpose."""
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=theirs.fileno(),
                env=self._environ,
                process_group=0,
                pass_fds=self._descriptors,
            )
        child = Supervised(process, ours, self._version)
        self._processes.add(child)
        if self._stopping.is_set():
            child.send(signal.SIGTERM)
        try:
            code = await process.wait()
            if child.ready:
                self._proven = child.version
            return code, child.left
        finally:
            self._processes.discard(child)
            child.close()

    def _settings_proven(self) -> bool:
        return self._proven == self._version or any(
            child.ready and child.version == self._version for child in self._processes
        )

    async def _sleep(self, seconds: float | None) -> None:
        """Sleep (None: without limit), but no longer than until a change or the stop."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return
        if not self._stopping.is_set():
            self._news.clear()

    def _signalled(self) -> None:
        self._signals += 1
        self._stop(signal.SIGTERM if self._signals <= 2 else signal.SIGKILL)

    def _stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._patience is not None and not self._stopping.is_set():
            asyncio.get_running_loop().call_later(self._patience, self._kill)
        self._stopping.set()
        self._news.set()
        for child in self._processes:
            child.send(number)

    def _kill(self) -> None:
        """Kill what is left: a handler can keep its process from hearing any other signal."""
        for child in self._processes:
            note(f"A {self._kind} process has not left in time: it is killed.")
            child.send(signal.SIGKILL)

    async def _watch(self, folder: Path) -> None:
        """Restart the processes whenever the code changes."""
        before = await asyncio.to_thread(snapshot, folder)
        while True:
            await asyncio.sleep(POLL_SECONDS)
            after = await asyncio.to_thread(snapshot, folder)
            if after == before:
                continue
            note(f"{_changed(before, after, folder)} changed: the {self._kind} is restarted.")
            before = after
            self._version += 1
            self._news.set()
            await self._restart()

    async def _restart(self) -> None:
        old = list(self._processes)
        for child in old:
            child.send(signal.SIGTERM)
        ends = [asyncio.ensure_future(child.process.wait()) for child in old]
        if ends and (await asyncio.wait(ends, timeout=RELOAD_GRACE))[1]:
            for child in old:
                child.send(signal.SIGTERM)  # the second signal stops it at once


def snapshot(folder: Path) -> dict[str, int]:
    """Return when the Python files in a folder were last changed."""
    return dict(_files(str(folder)))


def _files(folder: str) -> Iterator[tuple[str, int]]:
    for root, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__pycache__", "node_modules"))
            and not os.path.exists(os.path.join(root, name, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        ]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(root, name)  # noqa: PTH118 (thousands of them, twice a second)
                try:
                    yield path, os.stat(path).st_mtime_ns  # noqa: PTH116
                except OSError:
                    continue  # deleted in the meantime


def _changed(before: Mapping[str, int], after: Mapping[str, int], folder: Path) -> str:
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{os.path.relpath(paths[0], folder)}{more}"


def _end(code: int) -> str:
    if code < 0:
        return f"was ended by {signal_name(-code)}"
    return f"ended with exit code {code}"
