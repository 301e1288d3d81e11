"""A child process: runs one task after the other for a worker, and ends with it.

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
from fairlane.client.parent_results import ParentResults
from fairlane.core.errors import NotSupported
from fairlane.core.model import Claimed
from fairlane.core.outcomes import Failed, Outcome
from fairlane.runtime.execution import Call, Surroundings, enter_lifespans, execute, text_of
from fairlane.worker.forks import Origin, end_copy, watch_loop
from fairlane.worker.loading import load
from fairlane.worker.logs import send_to_worker
from fairlane.worker.memory import explained, limit_memory, out_of_memory
from fairlane.worker.messages import LENGTH, Broken, Order, Reported, RunEnded, Setup, encode, order

_PR_SET_PDEATHSIG = 1


class WorkerConnection:
    """The child's end of the socket. `send` can be called from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._guard = threading.Lock()

    def send(self, message: msgspec.Struct) -> None:
        with self._guard:
            self._connection.sendall(encode(message))

    def receive(self) -> bytes | None:
        """Return the next message, or None when the worker has closed the connection."""
        length = self._incoming.read(LENGTH.size)
        if len(length) < LENGTH.size:
            return None
        return self._incoming.read(LENGTH.unpack(length)[0])


class ChildRun:
    """A run in a child, as its handler sees it."""

    cancelled = False  # a cancelled run is killed with its child

    def __init__(self, task: Claimed, worker: WorkerConnection) -> None:
        self.task = task
        self._worker = worker

    def progress(self, percent: float | None, message: str | None) -> None:
        self._worker.send(Reported(percent, message))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        raise NotSupported('A task with isolation="process" has no ctx.transaction().')


class Child:
    """Runs the tasks that the worker sends."""

    def __init__(self, app: Fairlane, worker: WorkerConnection) -> None:
        self._app = app
        self._worker = worker
        self._busy = False
        self._origin = Origin()
        self._orders: asyncio.Queue[Order | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Run tasks until the worker closes the connection."""
        watch_loop()
        app, loop = self._app, asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            shared = await enter_lifespans(app.lifespans, app.tasks.values(), stack)
            around = Surroundings(
                shared,
                app.middleware,
                _call_here,
                app.payload_blobs().read,
                ParentResults(app.backend).of,
            )
            threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
            while (ordered := await self._orders.get()) is not None:
                outcome = await self._outcome(ordered.task, around)
                if self._origin.copied:
                    end_copy(failed=isinstance(outcome, Failed))
                self._busy = False
                self._worker.send(RunEnded.of(outcome))
        await app.aclose()

    async def _outcome(self, task: Claimed, around: Surroundings) -> Outcome:
        definition = self._app.tasks[task.type]
        most = definition.terms.memory_limit
        try:
            with limit_memory(most):
                outcome = await execute(definition, ChildRun(task, self._worker), around)
        except MemoryError:
            outcome = out_of_memory()
        return explained(outcome, most)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        while (message := self._worker.receive()) is not None:
            self._busy = True
            loop.call_soon_threadsafe(self._orders.put_nowait, order.decode(message))
        if self._busy:  # nobody is left to receive the outcome
            os._exit(1)
        loop.call_soon_threadsafe(self._orders.put_nowait, None)


async def _call_here(_type: str, call: Call) -> Any:
    """Make a call for a handler that is an ordinary function: it sees no event loop, as in a
    thread, so that it may run one of its own or wait for other tasks."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return call()
    finally:
        asyncio._set_running_loop(loop)


def main() -> None:
    _end_with(parent=int(sys.argv[2]))
    for number in (signal.SIGINT, signal.SIGTERM):
        # Signals to the group are for the worker, which lets its children finish. They are not
        # ignored, because programs that a handler starts would inherit that.
        signal.signal(number, lambda *_: None)
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    worker = WorkerConnection(connection)
    greeting = worker.receive()
    if greeting is None:
        return
    setup = msgspec.msgpack.decode(greeting, type=Setup)
    sys.path[:] = setup.path
    try:
        app = load(setup.target)
        app.url, app.encryption_keys, app.token = setup.url, setup.keys, setup.token
        if setup.blobs is not None:
            app.blobs = setup.blobs
        send_to_worker(worker.send, setup.levels)
        asyncio.run(Child(app, worker).serve())
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the worker reports it)
        worker.send(Broken(text_of(error)))
        sys.exit(1)


def _end_with(parent: int) -> None:
    """Let the kernel kill this process with its parent, even while a handler blocks."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main()
