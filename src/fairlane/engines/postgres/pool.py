"""Connections that are kept open between operations: one pool for threads, one for asyncio.

A connection is either idle in the pool or used by one operation. A connection in an unknown state
is closed, never put back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Generic, TypeVar

from fairlane.core.errors import StoreUnusable

C = TypeVar("C")
Opening = Callable[[], Coroutine[None, None, C]]
Closing = Callable[[C], Coroutine[None, None, None]]


class Pool(Generic[C]):
    """A pool for threads."""

    def __init__(self, open: Callable[[], C], discard: Callable[[C], None], size: int) -> None:
        self._open = open
        self._discard = discard
        self._free = threading.Semaphore(size)
        self._guard = threading.Lock()
        self._idle: list[C] = []
        self._closed = False

    def take(self) -> C:
        """Return an open connection. Waits while all are in use."""
        self._free.acquire()
        try:
            with self._guard:
                _check_open(self._closed)
                if self._idle:
                    return self._idle.pop()
            return self._open()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: C) -> None:
        """Put back a connection after an operation that succeeded."""
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
        if self._closed:
            self._discard(connection)
        self._free.release()

    def drop(self, connection: C) -> None:
        """Close a connection after an operation that failed."""
        self._discard(connection)
        self._free.release()

    def clear(self) -> None:
        """Close the idle connections: the server is gone, and with it all connections."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)

    def close(self) -> None:
        self._closed = True
        self.clear()


class AsyncPool(Generic[C]):
    """A pool for asyncio. Connections belong to the loop they were opened in, and end with it."""

    def __init__(self, open: Opening[C], close: Closing[C], size: int) -> None:
        self._open = open
        self._close = close
        self._size = size
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guardian: AsyncGenerator[None, None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._free = asyncio.Semaphore(size)
        self._idle: list[C] = []
        self._closed = False

    async def take(self) -> C:
        """Return an open connection. Waits while all are in use."""
        await self._bind_to_loop()
        await self._free.acquire()
        try:
            _check_open(self._closed)
            return self._idle.pop() if self._idle else await self._open()
        except BaseException:
            self._free.release()
            raise

    async def _bind_to_loop(self) -> None:
        """Start with no connections if the loop is another one than before."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._free = asyncio.Semaphore(self._size)
            self._idle = []
            self._guardian = self._guard()
            await anext(self._guardian)

    async def _guard(self) -> AsyncGenerator[None, None]:
        """Close the connections when the loop ends: asyncio.run closes generators first."""
        try:
            yield
        finally:
            self.clear()
            if self._closing:
                await asyncio.wait(self._closing)

    def give(self, connection: C) -> None:
        """Put back a connection after an operation that succeeded."""
        if self._closed:
            self.discard(connection)
        else:
            self._idle.append(connection)
        self._free.release()

    def drop(self, connection: C) -> None:
        """Close a connection after an operation that failed."""
        self.discard(connection)
        self._free.release()

    def clear(self) -> None:
        """Close the idle connections: the server is gone, and with it all connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            self.discard(connection)

    def discard(self, connection: C) -> None:
        """Close in the background: the caller may have been cancelled and must not wait."""
        closing = asyncio.ensure_future(self._close(connection))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        self._closed = True
        if self._guardian is not None and self._loop is asyncio.get_running_loop():
            await self._guardian.aclose()


def _check_open(closed: bool) -> None:
    if closed:
        raise StoreUnusable("This store is closed: open it again.")
