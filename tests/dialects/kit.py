"""Handlers that remember, and waiting for what the store tells."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 30.0
"""How long a test waits for what must happen."""


class Calls:
    """A handler that remembers what it was given, from whatever thread."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self._more = threading.Condition()

    def __call__(self, payload: Any) -> None:
        with self._more:
            self.given.append(payload)
            self._more.notify_all()

    async def reach(self, count: int) -> None:
        """Wait until there were so many calls."""
        assert await asyncio.to_thread(self._reach, count), f"only {len(self.given)} calls"

    def _reach(self, count: int) -> bool:
        with self._more:
            return self._more.wait_for(lambda: len(self.given) >= count, PATIENCE)


async def settled(look: Callable[[], T], enough: Callable[[T], bool]) -> T:
    """What there is to see once it is as expected: results reach the store after the handler."""
    async with asyncio.timeout(PATIENCE):
        while not enough(found := look()):  # noqa: ASYNC110 (another thread's doing)
            await asyncio.sleep(0.005)
        return found
