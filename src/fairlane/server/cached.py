"""A value that is read when needed, and kept for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """A value that is read at most once in `seconds`. Callers that ask during a read share it."""

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

    @property
    def current(self) -> T | None:
        """The value, if it is not too old: without the cost of a coroutine."""
        return self._seen[0] if self._clock() - self._seen_at < self._seconds else None

    async def get(self) -> T:
        """Return the value, which is at most `seconds` old."""
        if self._clock() - self._seen_at < self._seconds:
            return self._seen[0]
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._view())
            self._looking.add_done_callback(_retrieve_error)
        # Shielded: a caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(self._looking)

    async def _view(self) -> T:
        seen_at = self._clock()
        try:
            seen = await self._look()
            self._seen, self._seen_at = [seen], seen_at
            return seen
        finally:
            self._looking = None


def _retrieve_error(looking: asyncio.Task[T]) -> None:
    """Retrieve the error, in case every caller was cancelled: asyncio warns about errors that
    nobody retrieves."""
    if not looking.cancelled():
        looking.exception()
