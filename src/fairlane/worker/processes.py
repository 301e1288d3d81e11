"""Handlers in child processes, which can be killed and whose crash harms nothing else.

Each running task has a child of its own, which is kept for the next task. A child is spawned, not
forked: it inherits nothing that this process has open.
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

from fairlane.core.model import Claimed, TaskError
from fairlane.core.outcomes import Failed, Outcome
from fairlane.core.sealing import Key
from fairlane.worker.logs import levels, log
from fairlane.worker.memory import exhausted
from fairlane.worker.messages import (
    LENGTH,
    Broken,
    Logged,
    Order,
    Reported,
    RunEnded,
    Setup,
    encode,
    from_child,
)
from fairlane.worker.runs import CurrentRun

logger = logging.getLogger("fairlane.worker")

PROCESS_DIED = "PROCESS_DIED"
LEAVE_SECONDS = 5.0
LAST_WORD_SECONDS = 0.05


class Died(Exception):
    """A child ended before its run did."""


class Processes:
    """The children of a worker. `target` is the application, module:attribute, and `url` its store;
    after `runs` runs a child is replaced."""

    def __init__(
        self,
        target: str | None,
        url: str,
        runs: int | None = None,
        keys: tuple[Key, ...] = (),
        token: str | None = None,
        blobs: str | None = None,
    ) -> None:
        self._target = target
        self._url = url
        self._runs = runs
        self._keys = keys
        self._token = token
        self._blobs = blobs
        self._idle: list[ChildProcess] = []
        self._leaving: set[asyncio.Task[None]] = set()

    async def execute(self, run: CurrentRun, order: Claimed) -> Outcome:
        """Run a task in a child. If this is cancelled, the child is killed.

        `order`: the task of the run, with its inputs.
        """
        child = None
        try:
            child = self._take_idle() or await self._start()
            outcome = await child.execute(run, order)
        except Died as error:
            return Failed(TaskError.of(str(error), code=PROCESS_DIED))
        except (asyncio.CancelledError, OSError) as error:
            if child is not None:
                await child.kill()
            return Failed(TaskError.of(f"The process was killed. {error}", code=PROCESS_DIED))
        if child.runs == self._runs or exhausted(outcome):
            self._dismiss(child)
        else:
            self._idle.append(child)
        return outcome

    async def stop(self) -> None:
        """Let idle children end."""
        idle, self._idle = self._idle, []
        for child in idle:
            self._dismiss(child)
        await asyncio.gather(*self._leaving)

    def _dismiss(self, child: ChildProcess) -> None:
        leaving = asyncio.create_task(child.leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _take_idle(self) -> ChildProcess | None:
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
                start_new_session=True,  # so that it is killed together with all that it starts
            )
        known = (sys.path, self._target, self._url, levels())
        setup = Setup(*known, self._keys, self._token, self._blobs)
        writer.write(encode(setup))
        return ChildProcess(process, reader, writer)


class ChildProcess:
    """A child, as the worker sees it."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._received: asyncio.Queue[Reported | RunEnded | Broken | None] = asyncio.Queue()
        self._listening = asyncio.ensure_future(self._listen())
        self._end = asyncio.ensure_future(self._watch())
        self.runs = 0
        """How many runs it has started."""

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def execute(self, run: CurrentRun, order: Claimed) -> Outcome:
        """Run a task and return its outcome. Raises Died."""
        self.runs += 1
        self._writer.write(encode(Order(order)))
        while True:
            match await self._received.get():
                case None:
                    raise Died(await self._describe_end())
                case Reported(percent, message):
                    run.progress(percent, message)
                case RunEnded() as ended:
                    return ended.outcome
                case Broken(message):
                    await self.kill()
                    raise Died(f"A process for the handler cannot be started: {message}")

    async def kill(self) -> None:
        """Kill it at once, with everything that it has started."""
        if self.alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.shield(self._end)

    async def leave(self) -> None:
        """Let it end by itself, and kill it if that takes long."""
        self._writer.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await asyncio.shield(self._end)
        await self.kill()

    async def _listen(self) -> None:
        """Receive messages until the connection ends, also while the child is idle."""
        try:
            while True:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                match from_child.decode(await self._reader.readexactly(length)):
                    case Logged() as line:
                        log(line)
                    case other:
                        self._received.put_nowait(other)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except msgspec.DecodeError as error:  # it has forked, and several processes write at once
            logger.warning("A handler's process sent an invalid message: %s", error)
        finally:
            self._received.put_nowait(None)

    async def _describe_end(self) -> str:
        """Return what happened to a child whose connection has ended."""
        await asyncio.wait([self._end], timeout=LEAVE_SECONDS)
        if self.alive:
            await self.kill()
            return "The handler's process broke its line to the worker, and was killed."
        return _cause_of_end(self._end.result())

    async def _watch(self) -> int:
        code = await self._process.wait()
        # Its last messages may still be on their way. Do not wait long: processes that it forked
        # may keep the connection open for ever.
        await asyncio.wait([self._listening], timeout=LAST_WORD_SECONDS)
        self._writer.transport.abort()
        await self._listening
        return code


def _cause_of_end(code: int) -> str:
    if code >= 0:
        return f"The handler's process ended with exit code {code} before the handler returned."
    hint = " (out of memory, perhaps)" if -code == signal.SIGKILL else ""
    return f"The handler's process was killed by {signal_name(-code)}{hint}."


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
