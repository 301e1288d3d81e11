"""Handlers in processes of their own: killed for real when their time is up, and nobody else's
trouble when they crash.

One child per running task, kept for the next one. A child is started from scratch, never forked
with what this process has open.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress

from fairlane.core.machine import Failed, Outcome
from fairlane.core.model import TaskError
from fairlane.worker.messages import (
    LENGTH,
    Broken,
    Ended,
    Hello,
    Order,
    Reported,
    Said,
    framed,
    said,
)
from fairlane.worker.runs import CurrentRun

PROCESS_DIED = "PROCESS_DIED"
LEAVE_SECONDS = 5.0
LAST_WORD_SECONDS = 0.05


class Died(Exception):
    """A child ended before its run did."""


class Processes:
    """The children of a worker. `target` is where they find the application, module:attribute, and
    `url` where that finds its store."""

    def __init__(self, target: str | None, url: str) -> None:
        self._target = target
        self._url = url
        self._idle: list[ChildProcess] = []

    async def execute(self, run: CurrentRun) -> Outcome:
        """Run a task in a child. Cancelled, the child is killed."""
        child = None
        try:
            child = self._rested() or await self._start()
            outcome = await child.execute(run)
        except Died as error:
            return Failed(TaskError.of(str(error), code=PROCESS_DIED))
        except (asyncio.CancelledError, OSError) as error:
            if child is not None:
                await child.kill()
            return Failed(TaskError.of(f"The process was given up. {error}", code=PROCESS_DIED))
        self._idle.append(child)
        return outcome

    async def stop(self) -> None:
        """Let idle children go."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.leave() for child in idle))

    def _rested(self) -> ChildProcess | None:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
        return None

    async def _start(self) -> ChildProcess:
        assert self._target is not None, "a worker checks this when it starts"
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "fairlane.worker.child",
                str(theirs.fileno()),
                str(os.getpid()),
                stdin=DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # to be killed with all that it has started
            )
        writer.write(framed(Hello(sys.path, self._target, self._url)))
        return ChildProcess(process, reader, writer)


class ChildProcess:
    """One child, seen from the worker."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._end = asyncio.ensure_future(self._watch())

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def execute(self, run: CurrentRun) -> Outcome:
        """What came of a run. Raises Died."""
        self._writer.write(framed(Order(run.task)))
        while True:
            match await self._hear():
                case Reported(percent, message):
                    run.progress(percent, message)
                case Ended() as ended:
                    return ended.outcome
                case Broken(message):
                    await self.kill()
                    raise Died(f"A process for the handler cannot be started: {message}")

    async def kill(self) -> None:
        """End it at once, with everything it has started."""
        if self.alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.shield(self._end)

    async def leave(self) -> None:
        """Let it end by itself, if it does so soon."""
        self._writer.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await asyncio.shield(self._end)
        await self.kill()

    async def _hear(self) -> Said:
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return said.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Died(_obituary(await asyncio.shield(self._end))) from None

    async def _watch(self) -> int:
        code = await self._process.wait()
        # What it said last may still be on its way. But what it forked may keep the line open for
        # ever, so not for long.
        await asyncio.sleep(LAST_WORD_SECONDS)
        self._writer.transport.abort()
        return code


def _obituary(code: int) -> str:
    if code >= 0:
        return f"The handler's process ended with exit code {code} before the handler returned."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory, perhaps)" if -code == signal.SIGKILL else ""
    return f"The handler's process was killed by {name}{hint}."
