"""Waiting for tasks to end: one poll for everyone who waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from fairlane.core import limits
from fairlane.core.model import Task
from fairlane.core.states import TERMINAL

Get = Callable[[Sequence[str]], Coroutine[Any, Any, list[Task | None]]]
GetOne = Callable[[str], Task | None]

_SHORTEST, _LONGEST = 0.002, 0.1


class Results:
    """Looks for the ends of tasks on behalf of the coroutines of one event loop.

    Often at first and after every success, then less and less often.
    """

    def __init__(self, get: Get) -> None:
        self._get = get
        self._waiting: dict[str, list[asyncio.Future[Task | None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._pause = _SHORTEST
        self._newcomer = asyncio.Event()

    async def ended(self, task_id: str) -> Task | None:
        """The task once it has ended; None if there is no such task."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Task | None] = loop.create_future()
        self._waiting.setdefault(task_id, []).append(answer)
        self._pause = _SHORTEST
        self._newcomer.set()
        if self._looking is None:
            self._looking = loop.create_task(self._look())
        try:
            return await answer
        finally:
            if answer.cancelled():
                self._leave(task_id, answer)

    async def _look(self) -> None:
        try:
            while self._waiting:
                self._newcomer.clear()
                try:
                    await self._look_once()
                except Exception as error:  # noqa: BLE001 (told to everyone who waits)
                    self._tell_all(error)
                    return
                await self._rest()
        finally:
            self._looking = None

    async def _rest(self) -> None:
        """A while, cut short by whoever comes anew: what he waits for may have ended long ago."""
        pause, self._pause = self._pause, _longer(self._pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._newcomer.wait()

    async def _look_once(self) -> None:
        wanted = list(self._waiting)
        for start in range(0, len(wanted), limits.BATCH):
            ids = wanted[start : start + limits.BATCH]
            for task_id, task in zip(ids, await self._get(ids), strict=True):
                if task is None or task.status in TERMINAL:
                    self._pause = _SHORTEST
                    for answer in self._waiting.pop(task_id, ()):
                        if not answer.done():
                            answer.set_result(task)

    def _leave(self, task_id: str, answer: asyncio.Future[Task | None]) -> None:
        """Nobody waits for this answer any more."""
        others = [each for each in self._waiting.get(task_id, ()) if each is not answer]
        if others:
            self._waiting[task_id] = others
        else:
            self._waiting.pop(task_id, None)

    def _tell_all(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for answers in waiting.values():
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)


def ended(get: GetOne, task_id: str, timeout: float | None) -> Task | None:
    """The task once it has ended, for ordinary code. Raises TimeoutError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = _SHORTEST
    while True:
        task = get(task_id)
        if task is None or task.status in TERMINAL:
            return task
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            pause = min(pause, left)
        time.sleep(pause)
        pause = _longer(pause)


def _longer(pause: float) -> float:
    return min(pause * 1.5, _LONGEST)
