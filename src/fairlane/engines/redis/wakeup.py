"""Hints that there is work: messages on a channel, read on a connection of their own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from fairlane.core.errors import StoreError

_LONGEST_PAUSE = 2.0


class Subscription(Protocol):
    """A connection that does nothing but listen."""

    async def message(self) -> None:
        """Wait for a message. Raises StoreError when the connection is lost."""

    async def aclose(self) -> None:
        """Stop listening."""


class RedisWakeup:
    """Listens in a task of its own, and subscribes again whenever the connection is lost."""

    def __init__(self, subscribe: Callable[[], Awaitable[Subscription]]) -> None:
        self._subscribe = subscribe
        self._hint = asyncio.Event()
        self._tried = asyncio.Event()
        self._listener = asyncio.create_task(self._listen(), name="fairlane-redis-wakeup")

    async def tried(self) -> None:
        """Wait until the first attempt to subscribe has come to an end, either way."""
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
            # Hints get lost by nature, and whoever waits looks for himself now and then.
            with suppress(StoreError):
                subscription = await self._subscribe()
                try:
                    if self._tried.is_set():
                        self._hint.set()  # who knows what was missed
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
