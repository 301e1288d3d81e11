"""Going on while a store is away: how long to wait between attempts, and what to log."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlane.core.backend import Driver, Wakeup
from fairlane.core.errors import StoreError, StoreUnavailable

T = TypeVar("T")

logger = logging.getLogger("fairlane.store")


class Backoff:
    """Backoff with jitter; the longest possible one doubles from `first` to `longest` seconds.

    Jitter keeps clients that failed together from trying again together.
    """

    __slots__ = ("_ceiling", "_deadline", "_longest")

    def __init__(
        self, first: float = 0.1, longest: float = 10.0, patience: float = math.inf
    ) -> None:
        self._ceiling = first
        self._longest = longest
        self._deadline = time.monotonic() + patience

    def next(self) -> float:
        """Return how many seconds to wait before the next attempt."""
        pause = random.uniform(self._ceiling / 10, self._ceiling)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return pause

    def after(self, error: StoreUnavailable) -> float:
        """Return the pause after this error. Raise the error once `patience` seconds are over."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise error
        return min(max(self.next(), error.after), left)


def jitter(seconds: float, share: float = 0.1) -> float:
    """Return about `seconds`, so that processes that poll do not fall into step."""
    return seconds * random.uniform(1 - share, 1 + share)


def persist(attempt: Callable[[], T], patience: float, longest: float = math.inf) -> T:
    """Repeat an attempt that raises StoreUnavailable, for up to `patience` seconds.

    No pause is longer than `longest` seconds, whatever the store asks for.
    """
    backoff = Backoff(0.05, 2.0, patience)
    while True:
        try:
            return attempt()
        except StoreUnavailable as error:
            time.sleep(min(backoff.after(error), longest))


async def persist_async(
    attempt: Callable[[], Awaitable[T]], patience: float, longest: float = math.inf
) -> T:
    """`persist` for asyncio."""
    backoff = Backoff(0.05, 2.0, patience)
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            await asyncio.sleep(min(backoff.after(error), longest))


async def listen(driver: Driver) -> Wakeup:
    """Subscribe to the store's hints about new work; repeat until it succeeds."""
    backoff = Backoff()
    while True:
        try:
            return await driver.listen()
        except StoreError as error:
            logger.warning("Cannot listen for work yet: %s", error)
            await asyncio.sleep(backoff.next())


def warn(logger: logging.Logger, what: str, error: Exception) -> None:
    """Log that something failed and will be repeated; with a traceback unless the store failed."""
    unexpected = None if isinstance(error, StoreError) else error
    logger.warning("%s: %s", what, error, exc_info=unexpected)
