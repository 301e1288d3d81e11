"""Hints that there is work: an event within the process, the file's version across processes."""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol

# Often enough for a pickup within 10 ms, seldom enough to cost less than a hundredth of a core.
POLL_SECONDS = 0.008


class Watch(Protocol):
    """Sees commits of other processes."""

    def version(self) -> int:
        """A number that changes when another connection commits."""

    def close(self) -> None:
        """Stop looking."""


class Waiters:
    """Those in this process who wait for work."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._events: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def add(self, event: asyncio.Event) -> tuple[asyncio.AbstractEventLoop, asyncio.Event]:
        entry = (asyncio.get_running_loop(), event)
        with self._guard:
            self._events.add(entry)
        return entry

    def remove(self, entry: tuple[asyncio.AbstractEventLoop, asyncio.Event]) -> None:
        with self._guard:
            self._events.discard(entry)

    def wake(self) -> None:
        with self._guard:
            events = list(self._events)
        for loop, event in events:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


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
