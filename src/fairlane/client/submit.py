"""Submissions that arrive at the same time travel together.

The first one is sent at once; whatever gathers while it is under way goes with the next: low
latency when idle, large batches under load, and no timers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fairlane.core import limits
from fairlane.core.errors import Conflict, InvalidInput
from fairlane.core.model import Accepted, NewTask

Send = Callable[[Sequence[NewTask]], Coroutine[Any, Any, list[Accepted]]]


class Submitter:
    """Gathers what the coroutines of one event loop submit."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[tuple[NewTask, asyncio.Future[Accepted]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def submit(self, task: NewTask) -> Accepted:
        """Submit one task; answers when it is stored."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Accepted] = loop.create_future()
        self._waiting.append((task, answer))
        if self._sending is None:
            self._sending = loop.create_task(self._send_all())
        return await answer

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: limits.SUBMIT_BATCH]
                del self._waiting[: limits.SUBMIT_BATCH]
                await self._send_batch(batch)
        finally:
            self._sending = None

    async def _send_batch(self, batch: list[tuple[NewTask, asyncio.Future[Accepted]]]) -> None:
        try:
            answers = await self._send([task for task, _ in batch])
        except (Conflict, InvalidInput) as error:
            if len(batch) == 1:
                _refuse(batch, error)
                return
            # One of them is at fault, and a batch is all or none: find out which, by halves.
            half = len(batch) // 2
            await self._send_batch(batch[:half])
            await self._send_batch(batch[half:])
        except BaseException as error:
            _refuse(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, answer), accepted in zip(batch, answers, strict=True):
                if not answer.done():
                    answer.set_result(accepted)


def _refuse(batch: list[tuple[NewTask, asyncio.Future[Accepted]]], error: BaseException) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(error)
