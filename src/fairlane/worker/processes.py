"""Handlers in processes of their own: killed for real when their time is up, and nobody else's
trouble when they crash.

One child per running task, kept for the next one. A child is started from scratch, never forked
with what this process has open.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress

import msgspec

from fairlane.core.machine import Failed, Outcome
from fairlane.core.model import TaskError
from fairlane.core.sealing import Key
from fairlane.worker.logs import levels, log
from fairlane.worker.memory import exhausted
from fairlane.worker.messages import (
    LENGTH,
    Broken,
    Ended,
    Hello,
    Logged,
    Order,
    Reported,
    framed,
    said,
)
from fairlane.worker.runs import CurrentRun

logger = logging.getLogger("fairlane.worker")

PROCESS_DIED = "PROCESS_DIED"
LEAVE_SECONDS = 5.0
LAST_WORD_SECONDS = 0.05


class Died(Exception):
    """A child ended before its run did."""


class Processes:
    """The children of a worker. `target` is where they find the application, module:attribute, and
    `url` where that finds its store; after so many `runs` a child makes room for a new one."""

    def __init__(
        self,
        target: str | None,
        url: str,
        runs: int | None = None,
        keys: tuple[Key, ...] = (),
        token: str | None = None,
    ) -> None:
        self._target = target
        self._url = url
        self._runs = runs
        self._keys = keys
        self._token = token
        self._idle: list[ChildProcess] = []
        self._leaving: set[asyncio.Task[None]] = set()

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
        if child.runs == self._runs or exhausted(outcome):
            self._send_away(child)
        else:
            self._idle.append(child)
        return outcome

    async def stop(self) -> None:
        """Let idle children go."""
        idle, self._idle = self._idle, []
        for child in idle:
            self._send_away(child)
        await asyncio.gather(*self._leaving)

    def _send_away(self, child: ChildProcess) -> None:
        leaving = asyncio.create_task(child.leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

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
        hello = Hello(sys.path, self._target, self._url, levels(), self._keys, self._token)
        writer.write(framed(hello))
        return ChildProcess(process, reader, writer)


class ChildProcess:
    """One child, seen from the worker."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._said: asyncio.Queue[Reported | Ended | Broken | None] = asyncio.Queue()
        self._listening = asyncio.ensure_future(self._listen())
        self._end = asyncio.ensure_future(self._watch())
        self.runs = 0
        """How many runs it has begun."""

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def execute(self, run: CurrentRun) -> Outcome:
        """What came of a run. Raises Died."""
        self.runs += 1
        self._writer.write(framed(Order(run.task)))
        while True:
            match await self._said.get():
                case None:
                    raise Died(await self._last_known())
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

    async def _listen(self) -> None:
        """Hear what the child says, for as long as it can: also while it idles."""
        try:
            while True:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                match said.decode(await self._reader.readexactly(length)):
                    case Logged() as line:
                        log(line)
                    case other:
                        self._said.put_nowait(other)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except msgspec.DecodeError as error:  # it has forked, and several speak at the same time
            logger.warning("A handler's process cannot be understood: %s", error)
        finally:
            self._said.put_nowait(None)

    async def _last_known(self) -> str:
        """What became of a child that says no more."""
        await asyncio.wait([self._end], timeout=LEAVE_SECONDS)
        if self.alive:
            await self.kill()
            return "The handler's process broke its line to the worker, and was killed."
        return _obituary(self._end.result())

    async def _watch(self) -> int:
        code = await self._process.wait()
        # What it said last may still be on its way. But what it forked may keep the line open for
        # ever, so not for long.
        await asyncio.wait([self._listening], timeout=LAST_WORD_SECONDS)
        self._writer.transport.abort()
        await self._listening
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
