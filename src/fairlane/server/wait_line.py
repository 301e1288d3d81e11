"""Wait queues of long polls: polls that want the same kind of task wait in the same queue.

However many wait, only one poll of a queue asks the store at a time: when there is a hint, when a
task becomes due, and once in a while to be safe. A poll that gets tasks leaves, and the next one
asks. When a poll gets fewer tasks than it wants, the others need not ask.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from fairlane.backoff import Backoff, jitter, warn
from fairlane.core import limits
from fairlane.core.model import Ask, Grant

logger = logging.getLogger("fairlane.server")

SAFETY_SECONDS: Final = 1.0
"""How often a queue asks without a hint: hints get lost."""
LOOKS_A_SECOND: Final = 50
"""How often all queues together ask without a hint, at most."""
DUE_SECONDS: Final = 0.01
"""A task that is due earlier by less than this does not wake the queue earlier."""
MISS_SECONDS: Final = 0.01
"""The debt of a claim that brings no tasks. Hints for other queues may come by the thousand:
a queue whose debt is above `CREDIT_SECONDS` rests until it is below that."""
CREDIT_SECONDS: Final = 0.2


class Waiter:
    """A long poll that waits."""

    __slots__ = ("_doubt", "answer", "ask", "begins", "due_in", "expired", "looking", "repeats")

    def __init__(self, ask: Ask, *, begins: bool = True, repeats: bool = True) -> None:
        self.ask = ask
        self.begins = begins
        """Tasks that it gets count as started."""
        self.repeats = repeats
        """After an error the worker repeats the poll with the same request id."""
        self.answer: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        self.due_in: float | None = None
        """When there may be more tasks, as the store said last."""
        self.looking = True
        """A claim for it is in flight, as at the beginning."""
        self.expired = False
        """Its time is over: the claim in flight is the last one."""
        self._doubt: Exception | None = None

    def end(self) -> None:
        """End the wait without tasks."""
        if not self.answer.done():
            self.answer.set_result(Grant([], self.due_in))

    def expire(self) -> None:
        """End the wait, after the claim in flight if there is one."""
        self.expired = True
        if self.looking:
            return
        if self._doubt is None:
            self.end()
        else:
            self.fail(self._doubt)

    def doubt(self, error: Exception) -> None:
        """Record that a claim failed: the store may have granted tasks. Until it is asked again,
        the poll must not answer that there are none."""
        self._doubt = error
        if self.expired:
            self.fail(error)

    def heard(self) -> None:
        """Record that the store has answered."""
        self._doubt = None

    def fail(self, error: Exception) -> None:
        """End the wait with an error."""
        if not self.answer.done():
            self.answer.set_exception(error)


Look = Callable[[Waiter], Awaitable[Grant | None]]
"""Claims for a waiter; returns None if it does not wait any more."""


class WaitLine:
    """Waiters for the same kind of task, first come, first served."""

    def __init__(self, look: Look, lines: Callable[[], int]) -> None:
        self._look_for = look
        self._lines = lines
        self._waiters: dict[Waiter, None] = {}
        self._stirred = asyncio.Event()
        self._due_at = float("inf")
        self._wakes_at = float("-inf")
        """When it asks next; in the past until it starts."""
        self._paid_at = float("-inf")
        """When the debt of claims without tasks is paid off."""

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter, due_in: float | None) -> None:
        """Add a waiter whose claim brought nothing. `due_in`: when the store expects tasks."""
        self._waiters[waiter] = None
        waiter.answer.add_done_callback(lambda _: self._waiters.pop(waiter, None))
        due_at = _at(due_in)
        if due_at + DUE_SECONDS < self._wakes_at:
            self._stirred.set()
        elif self._wakes_at == float("-inf"):
            self._due_at = due_at

    def stir(self) -> None:
        """Wake the queue: there may be work."""
        self._stirred.set()

    def dismiss(self) -> None:
        """End all waits."""
        for waiter in self._waiters:
            waiter.expire()
        self._stirred.set()

    async def run(self) -> None:
        """Ask the store when there is a reason to, until nobody waits."""
        backoff = Backoff()
        while self._first() is not None:
            await self._rest()
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 (logged and repeated)
                # The waiters go on waiting: otherwise they would all come back at once.
                warn(logger, "No tasks can be claimed", error)
                await asyncio.sleep(backoff.next())
            else:
                backoff = Backoff()

    def _first(self) -> Waiter | None:
        return next((waiter for waiter in self._waiters if not waiter.answer.done()), None)

    async def _rest(self) -> None:
        safety = jitter(max(SAFETY_SECONDS, self._lines() / LOOKS_A_SECOND))
        self._wakes_at = min(self._due_at, time.monotonic() + safety)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wakes_at - time.monotonic()):
                await self._stirred.wait()
        rest = self._paid_at - time.monotonic() - CREDIT_SECONDS
        if rest > 0:
            await asyncio.sleep(rest)

    async def _look(self) -> None:
        self._stirred.clear()
        while (waiter := self._first()) is not None:
            # Move it to the end: a waiter whose worker gets nothing must not block the others.
            self._waiters[waiter] = self._waiters.pop(waiter)
            grant = await self._look_for(waiter)
            if grant is None:
                continue
            self._due_at = _at(grant.next_due_in)
            if not grant.tasks:
                self._paid_at = max(self._paid_at, time.monotonic()) + MISS_SECONDS
            if len(grant.tasks) < min(waiter.ask.slots, limits.BATCH):
                return


def _at(due_in: float | None) -> float:
    return float("inf") if due_in is None else time.monotonic() + due_in
