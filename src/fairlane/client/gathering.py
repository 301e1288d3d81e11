"""Calls that are made at the same time travel together.

The first one is sent at once; whatever gathers while it is under way goes with the next: low
latency when idle, large batches under load, and no timers. Who calls alone, again and again, sends
for himself: a task and a future for every call would cost him as much as the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from fairlane.core.errors import Conflict, InvalidInput

Q = TypeVar("Q")
A = TypeVar("A")

Send = Callable[[Sequence[Q]], Coroutine[Any, Any, list[A]]]
"""Sends a batch; answers each of its items, in order."""


class Gatherer(Generic[Q, A]):
    """Gathers what the coroutines of one event loop ask, at most so many in a batch."""

    def __init__(self, send: Send[Q, A], most: int) -> None:
        self._send = send
        self._most = most
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._sending = False
        self._sender: asyncio.Task[None] | None = None
        self._company = False
        """Whether several travelled together the last time."""

    async def ask(self, item: Q) -> A:
        """The answer to one item."""
        if not self._sending and not self._company:
            return await self._send_alone(item)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((item, answer))
        if not self._sending:
            self._send_the_rest()
        return await answer

    async def _send_alone(self, item: Q) -> A:
        self._sending = True
        try:
            (answer,) = await self._send([item])
            return answer
        finally:
            self._send_the_rest()

    def _send_the_rest(self) -> None:
        self._sending = bool(self._waiting)
        if self._sending:
            self._sender = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: self._most]
                del self._waiting[: self._most]
                self._company = len(batch) > 1
                await self._send_batch(batch)
        finally:
            self._sending = False

    async def _send_batch(self, batch: list[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
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
            for (_, waiting), answer in zip(batch, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)


def _refuse(batch: list[tuple[Q, asyncio.Future[A]]], error: BaseException) -> None:
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)
