"""Where handlers run: on the event loop, or on threads."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

Call = Callable[[], Any]
Answer = tuple[Any, BaseException | None]
"""What a call returned, or what it raised: not every exception can be carried by a future."""


class Threads:
    """Threads for handlers that block. One that is given up on is replaced, not waited for."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._idle = 0
        self._started = 0
        self._stopped = False
        self.abandoned = 0
        """How many still run something that nobody waits for any more."""

    async def run(self, call: Call) -> Any:
        """What the call returns or raises, on a thread of its own. Cancelled, it runs on."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        job = _Job(call, contextvars.copy_context(), loop, answer)
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
                    self.abandoned += 1
            raise
        if error is not None:
            raise error
        return value

    def stop(self) -> None:
        """Let idle threads go; those that run end with what they run."""
        with self._guard:
            self._stopped = True
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            tell = job.perform()
            with self._guard:
                job.ended = True
                if job.abandoned:
                    self.abandoned -= 1
                if not self._stopped:
                    self._idle += 1
            tell()  # only now: whoever hears of it may want a thread again
            if self._stopped:
                return
            del job, tell  # and with them what the handler was given


class _Job:
    __slots__ = ("_answer", "_call", "_context", "_loop", "abandoned", "ended")

    def __init__(
        self,
        call: Call,
        context: contextvars.Context,
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[Answer],
    ) -> None:
        self._call = call
        self._context = context
        self._loop = loop
        self._answer = answer
        self.abandoned = False
        self.ended = False

    def perform(self) -> Callable[[], None]:
        """Make the call; answers how to tell what came of it."""
        answer: Answer
        try:
            answer = self._context.run(self._call), None
        except BaseException as raised:  # noqa: BLE001 (whatever a handler raises is its outcome)
            answer = None, raised
        return partial(self._tell_soon, answer)

    def _tell_soon(self, answer: Answer) -> None:
        with suppress(RuntimeError):  # of a loop that is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell, answer)

    def _tell(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)
