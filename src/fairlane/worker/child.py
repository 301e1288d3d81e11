"""A child process: runs one task after the other on behalf of a worker, and ends with it.

Started as `python -m fairlane.worker.child <socket> <parent's pid>`.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
import threading
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from fairlane.client.app import Fairlane
from fairlane.core.errors import NotSupported
from fairlane.core.machine import Outcome
from fairlane.core.model import Claimed
from fairlane.runtime.execution import Call, Surroundings, execute, text_of
from fairlane.runtime.lifespans import provided
from fairlane.worker.loading import loaded
from fairlane.worker.logs import send_to_worker
from fairlane.worker.memory import explained, limited, spent
from fairlane.worker.messages import LENGTH, Broken, Ended, Hello, Order, Reported, framed, ordered

_PR_SET_PDEATHSIG = 1


class Line:
    """The child's end of the socket. May be spoken on from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._guard = threading.Lock()

    def say(self, message: msgspec.Struct) -> None:
        with self._guard:
            self._connection.sendall(framed(message))

    def hear(self) -> bytes | None:
        """The next message; None when the worker has hung up."""
        length = self._incoming.read(LENGTH.size)
        if len(length) < LENGTH.size:
            return None
        return self._incoming.read(LENGTH.unpack(length)[0])


class ChildRun:
    """A run as its handler sees it from inside a child."""

    cancelled = False  # who cancels a child kills it

    def __init__(self, task: Claimed, line: Line) -> None:
        self.task = task
        self._line = line

    def progress(self, percent: float | None, message: str | None) -> None:
        self._line.say(Reported(percent, message))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        raise NotSupported('ctx.transaction() is not there for a task with isolation="process".')


class Child:
    """Takes orders and carries them out."""

    def __init__(self, app: Fairlane, line: Line) -> None:
        self._app = app
        self._line = line
        self._busy = False
        self._orders: asyncio.Queue[Order | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Until the worker hangs up."""
        app, loop = self._app, asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            shared = await provided(app.lifespans, app.tasks.values(), stack)
            around = Surroundings(shared, app.middleware, _in_place)
            threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
            while (order := await self._orders.get()) is not None:
                outcome = await self._outcome(order.task, around)
                self._busy = False
                self._line.say(Ended.of(outcome))
        await app.aclose()

    async def _outcome(self, task: Claimed, around: Surroundings) -> Outcome:
        definition = self._app.tasks[task.type]
        most = definition.terms.memory_limit
        try:
            with limited(most):
                outcome = await execute(definition, ChildRun(task, self._line), around)
        except MemoryError:
            outcome = spent()
        return explained(outcome, most)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        while (message := self._line.hear()) is not None:
            self._busy = True
            loop.call_soon_threadsafe(self._orders.put_nowait, ordered.decode(message))
        if self._busy:  # nobody is left who would want to know what comes of it
            os._exit(1)
        loop.call_soon_threadsafe(self._orders.put_nowait, None)


async def _in_place(call: Call) -> Any:
    return call()


def main() -> None:
    _end_with(parent=int(sys.argv[2]))
    for number in (signal.SIGINT, signal.SIGTERM):
        # Meant for the worker, which lets its children finish. (Not ignored: what a handler starts
        # would inherit that.)
        signal.signal(number, lambda *_: None)
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    line = Line(connection)
    greeting = line.hear()
    if greeting is None:
        return
    hello = msgspec.msgpack.decode(greeting, type=Hello)
    sys.path[:] = hello.path
    try:
        app = loaded(hello.target)
        app.url, app.encryption_keys, app.token = hello.url, hello.keys, hello.token
        send_to_worker(line.say, hello.levels)
        asyncio.run(Child(app, line).serve())
    except (Exception, SystemExit) as error:  # noqa: BLE001 (told to the worker)
        line.say(Broken(text_of(error)))
        sys.exit(1)


def _end_with(parent: int) -> None:
    """Die when the parent does, even while a handler never lets go of the interpreter."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main()
