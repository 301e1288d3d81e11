"""Supervise several worker or server processes, or one that is restarted when its code changes.

A process that dies is restarted, with growing pauses. Signals are passed on; each child has its own
process group, so that Ctrl-C reaches it only from here. A child whose supervisor is gone stops by
itself, because its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairlane.cli.errors import EXIT_USAGE, note

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
PROVEN_SECONDS = 60.0
"""After a process has run this long, its next pause is the shortest again."""
POLL_SECONDS = 0.5
RELOAD_GRACE = 2.0
"""How long a process may finish its tasks after its code has changed."""


class Supervisor:
    """Keeps `count` processes of a command running until stopped."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        count: int,
        watched: Path | None = None,
        *,
        kind: str = "worker",
        descriptors: Sequence[int] = (),
    ) -> None:
        self._command = command
        self._environ = environ
        self._count = count
        self._watched = watched
        self._kind = kind
        self._descriptors = descriptors
        """Open files that every process inherits, such as listening sockets."""
        self._processes: set[Process] = set()
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
        while not self._stopping.is_set():
            version, began = self._version, time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return max(0, code)
            if version != self._version:
                continue
            if code == 0:
                note(f"{self._kind.capitalize()} process {number} has left.")
                return 0
            if code == EXIT_USAGE and self._watched is None:
                self._stop()  # a wrong command line is wrong for all processes
                return code
            if code == EXIT_USAGE:
                note("Waiting for a change.")
                await self._sleep(None)
                continue
            pause = FIRST_PAUSE if time.monotonic() - began > PROVEN_SECONDS else pause
            which = f"{self._kind.capitalize()} process {number}"
            note(f"{which} {_end(code)}: it is restarted in {pause:g} s.")
            await self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return 0

    async def _run_once(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            env=self._environ,
            process_group=0,
            pass_fds=self._descriptors,
        )
        self._processes.add(process)
        if self._stopping.is_set():
            _send(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            self._processes.discard(process)

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
        self._stopping.set()
        self._news.set()
        for process in list(self._processes):
            _send(process, number)

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
        for process in old:
            _send(process, signal.SIGTERM)
        ends = [asyncio.ensure_future(process.wait()) for process in old]
        if ends and (await asyncio.wait(ends, timeout=RELOAD_GRACE))[1]:
            for process in old:
                _send(process, signal.SIGTERM)  # the second signal stops it at once


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


def _send(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        try:
            process.send_signal(number)
        except ProcessLookupError:
            return


def _end(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
