"""A value that is looked up when it is asked for, but not more often than needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """Everyone who asks within `seconds` shares one look, and so does everyone who asks while
    somebody is looking."""

    __slots__ = ("_clock", "_look", "_looking", "_seconds", "_seen", "_seen_at")

    def __init__(
        self,
        look: Callable[[], Awaitable[T]],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._seconds = seconds
        self._clock = clock
        self._seen: list[T] = []
        """The value, once there is one."""
        self._seen_at = float("-inf")
        self._looking: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The value as it was within the last `seconds`."""
        if self._clock() - self._seen_at < self._seconds:
            return self._seen[0]
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._view())
            self._looking.add_done_callback(_noted)
        # Shielded: that one of those who wait goes away must not end it for the others.
        return await asyncio.shield(self._looking)

    async def _view(self) -> T:
        seen_at = self._clock()
        try:
            seen = await self._look()
            self._seen, self._seen_at = [seen], seen_at
            return seen
        finally:
            self._looking = None


def _noted(looking: asyncio.Task[T]) -> None:
    """Everyone who waited may have gone away: then nobody is there to hear that it failed."""
    if not looking.cancelled():
        looking.exception()
