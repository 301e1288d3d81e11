"""Receive wake-up hints: messages on a channel, read on a separate connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from fairlane.core.errors import StoreError

_LONGEST_PAUSE = 2.0


class Subscription(Protocol):
    """A connection that only listens."""

    async def message(self) -> None:
        """Wait for a message. Raise StoreError if the connection is lost."""

    async def aclose(self) -> None:
        """Stop listening."""


class RedisWakeup:
    """Listen in a separate asyncio task; subscribe again whenever the connection is lost."""

    def __init__(self, subscribe: Callable[[], Awaitable[Subscription]]) -> None:
        self._subscribe = subscribe
        self._hint = asyncio.Event()
        self._tried = asyncio.Event()
        self._listener = asyncio.create_task(self._listen(), name="fairlane-redis-wakeup")

    async def wait_for_first_attempt(self) -> None:
        """Wait until the first attempt to subscribe has succeeded or failed."""
        await self._tried.wait()

    async def wait(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        hinted = self._hint.is_set()
        self._hint.clear()
        return hinted

    async def aclose(self) -> None:
        self._listener.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener

    async def _listen(self) -> None:
        ceiling = 0.05
        while True:
            # A lost hint does no harm: workers also poll.
            with suppress(StoreError):
                subscription = await self._subscribe()
                try:
                    if self._tried.is_set():
                        self._hint.set()  # hints may have been lost while there was no connection
                    self._tried.set()
                    ceiling = 0.05
                    while True:
                        await subscription.message()
                        self._hint.set()
                finally:
                    await subscription.aclose()
            self._tried.set()
            await asyncio.sleep(random.uniform(0, ceiling))
            ceiling = min(2 * ceiling, _LONGEST_PAUSE)
