"""Hints that there is work: an event within the process, the file's version across processes."""

from __future__ import annotations

import asyncio
from typing import Protocol

from fairlane.engines.waiters import Waiters

# Often enough for a pickup within 10 ms, seldom enough to cost less than a hundredth of a core.
POLL_SECONDS = 0.008


class Watch(Protocol):
    """Sees commits of other processes."""

    def version(self) -> int:
        """A number that changes when another connection commits."""

    def close(self) -> None:
        """Stop looking."""


class SqliteWakeup:
    """Hints from this process at once, from others by watching the file's version."""

    def __init__(self, waiters: Waiters, watch: Watch | None) -> None:
        self._waiters = waiters
        self._watch = watch
        self._event = asyncio.Event()
        self._entry = waiters.add(self._event)
        self._seen = self._version()

    async def wait(self, seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        while not self._hinted():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            nap = left if self._watch is None else min(left, POLL_SECONDS)
            try:
                async with asyncio.timeout(nap):
                    await self._event.wait()
            except TimeoutError:
                continue
        return True

    def _hinted(self) -> bool:
        version = self._version()
        hinted = self._event.is_set() or version != self._seen
        self._event.clear()
        self._seen = version
        return hinted

    def _version(self) -> int:
        return 0 if self._watch is None else self._watch.version()

    async def aclose(self) -> None:
        self._waiters.remove(self._entry)
        if self._watch is not None:
            self._watch.close()
