"""Threads for handlers that block."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from fairlane.worker.forks import Origin, end_copy
from fairlane.worker.hanging import Hanging

Call = Callable[[], Any]
Answer = tuple[Any, BaseException | None]
"""What a call returned, and what it raised: a future cannot carry every exception."""


class Threads:
    """A pool of threads that grows as needed. A thread that hangs is replaced, not waited for."""

    def __init__(self, hanging: Hanging | None = None) -> None:
        self._hanging = Hanging() if hanging is None else hanging
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._origin = Origin()
        self._guard = threading.Lock()
        self._idle = 0
        self._started = 0
        self._stopped = False

    async def run(self, type: str, call: Call) -> Any:
        """Make a call for a task of a type on a thread, and return or raise what it does.

        If this is cancelled, the call goes on.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        job = _Job(type, call, contextvars.copy_context(), loop, answer)
        with self._guard:
            if self._idle:
                self._idle -= 1
            else:
                self._started += 1
                threading.Thread(
                    target=self._serve, name=f"fairlane-handler-{self._started}", daemon=True
                ).start()
        self._jobs.put(job)
        try:
            value, error = await answer
        except asyncio.CancelledError:
            with self._guard:
                if not job.ended:
                    job.abandoned = True
                    self._hanging.abandon(type)
            raise
        self._hanging.succeed(type)
        if error is not None:
            raise error
        return value

    def stop(self) -> None:
        """End idle threads at once, and the others when their calls return."""
        with self._guard:
            self._stopped = True
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            deliver = job.perform(self._origin)
            with self._guard:
                job.ended = True
                if job.abandoned:
                    self._hanging.finish(job.type)
                if not self._stopped:
                    self._idle += 1
            deliver()  # only now: the receiver may need a thread at once
            if self._stopped:
                return
            del job, deliver  # they hold the handler's arguments


class _Job:
    __slots__ = ("_answer", "_call", "_context", "_loop", "abandoned", "ended", "type")

    def __init__(
        self,
        type: str,
        call: Call,
        context: contextvars.Context,
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[Answer],
    ) -> None:
        self.type = type
        self._call = call
        self._context = context
        self._loop = loop
        self._answer = answer
        self.abandoned = False
        self.ended = False

    def perform(self, origin: Origin) -> Callable[[], None]:
        """Make the call, and return a function that delivers its answer."""
        answer: Answer
        try:
            answer = self._context.run(self._call), None
        except BaseException as raised:  # noqa: BLE001 (whatever a handler raises is its outcome)
            answer = None, raised
        if origin.copied:
            end_copy(failed=answer[1] is not None)
        return partial(self._deliver, answer)

    def _deliver(self, answer: Answer) -> None:
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._set, answer)

    def _set(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)
