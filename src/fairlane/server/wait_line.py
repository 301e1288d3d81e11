"""Those who wait for work, in lines: who wants the same kind of task stands in the same one.

However many wait, one of each line looks for work on behalf of all: when there is a hint, when
something falls due, and now and then to be safe. Whoever finds something leaves, and has the next
one look; as soon as somebody finds less than wanted, the others need not.
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
"""How often a line looks by itself: hints get lost."""
LOOKS_A_SECOND: Final = 50
"""What many lines together do of that at the most."""
DUE_SECONDS: Final = 0.01
"""Nothing is looked for earlier because it is due by so little earlier."""
MISS_SECONDS: Final = 0.01
"""What a look costs that finds nothing. Hints that are meant for others may come by the thousand a
second: a line that has run up more than `CREDIT_SECONDS` rests until that much is paid off."""
CREDIT_SECONDS: Final = 0.2


class Waiter:
    """A poll that has not been answered."""

    __slots__ = ("_doubt", "answer", "ask", "begins", "due_in", "expired", "looking", "repeats")

    def __init__(self, ask: Ask, *, begins: bool = True, repeats: bool = True) -> None:
        self.ask = ask
        self.begins = begins
        """What it gets runs from then on."""
        self.repeats = repeats
        """When it is told of an error, the same will be asked for again."""
        self.answer: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        self.due_in: float | None = None
        """When there may be more, as the store said last."""
        self.looking = True
        """The store is being asked for it, as it is to begin with."""
        self.expired = False
        """Nothing was found in time: what is looked for at the moment is the last try."""
        self._doubt: Exception | None = None

    def end(self) -> None:
        """Wait no more, for nobody is there any more."""
        if not self.answer.done():
            self.answer.set_result(Grant([], self.due_in))

    def expire(self) -> None:
        """Wait no more than it takes to hear of a claim that is under way."""
        self.expired = True
        if self.looking:
            return
        if self._doubt is None:
            self.end()
        else:
            self.fail(self._doubt)

    def doubt(self, error: Exception) -> None:
        """The store may have given tasks, and an error has come in place of them. Until it has been
        asked again, nobody can say that there is nothing."""
        self._doubt = error
        if self.expired:
            self.fail(error)

    def heard(self) -> None:
        """The store has answered: there is no doubt any more."""
        self._doubt = None

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        if not self.answer.done():
            self.answer.set_exception(error)


Look = Callable[[Waiter], Awaitable[Grant | None]]
"""Asks the store for a waiter; None when that one is no longer to have anything."""


class WaitLine:
    """Waiters for the same kind of task, first come, first served."""

    def __init__(self, look: Look, lines: Callable[[], int]) -> None:
        self._look_for = look
        self._lines = lines
        self._waiters: dict[Waiter, None] = {}
        self._stirred = asyncio.Event()
        self._due_at = float("inf")
        self._wakes_at = float("-inf")
        """When it looks next; in the past before it began."""
        self._paid_at = float("-inf")
        """When all looks are paid off that found nothing."""

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Waiter, due_in: float | None) -> None:
        """Someone comes, who has just seen that there is nothing, but something is due then."""
        self._waiters[waiter] = None
        waiter.answer.add_done_callback(lambda _: self._waiters.pop(waiter, None))
        due_at = _at(due_in)
        if due_at + DUE_SECONDS < self._wakes_at:
            self._stirred.set()
        elif self._wakes_at == float("-inf"):
            self._due_at = due_at

    def stir(self) -> None:
        """There may be work."""
        self._stirred.set()

    def dismiss(self) -> None:
        """Nobody is to wait any more."""
        for waiter in self._waiters:
            waiter.expire()
        self._stirred.set()

    async def run(self) -> None:
        """Look when there is reason to, until nobody waits."""
        backoff = Backoff()
        while self._first() is not None:
            await self._rest()
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 (nobody who waits is left alone)
                # Whoever waits goes on waiting: this way they do not all come back at once.
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
            # To the back, so that one who gets nothing because of who it is stands in nobody's way.
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
