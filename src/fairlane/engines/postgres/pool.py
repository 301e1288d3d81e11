"""Connections that are kept open between operations: one pool for threads, one for a loop.

A connection is either idle in here or in the hands of one operation. What an operation leaves in
doubt is thrown away, never put back.
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
    """For threads."""

    def __init__(self, open: Callable[[], C], discard: Callable[[C], None], size: int) -> None:
        self._open = open
        self._discard = discard
        self._free = threading.Semaphore(size)
        self._guard = threading.Lock()
        self._idle: list[C] = []
        self._closed = False

    def take(self) -> C:
        """An open connection; waits while all are in use."""
        self._free.acquire()
        try:
            with self._guard:
                _refuse_if(self._closed)
                if self._idle:
                    return self._idle.pop()
            return self._open()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: C) -> None:
        """Back from an operation that went well."""
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
        if self._closed:
            self._discard(connection)
        self._free.release()

    def drop(self, connection: C) -> None:
        """Back from an operation that did not."""
        self._discard(connection)
        self._free.release()

    def clear(self) -> None:
        """Throw away what is idle: the server has gone, and with it all connections."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)

    def close(self) -> None:
        self._closed = True
        self.clear()


class AsyncPool(Generic[C]):
    """For asyncio. Connections belong to the loop they were opened in, and end with it."""

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
        """An open connection; waits while all are in use."""
        await self._settle_in()
        await self._free.acquire()
        try:
            _refuse_if(self._closed)
            return self._idle.pop() if self._idle else await self._open()
        except BaseException:
            self._free.release()
            raise

    async def _settle_in(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._free = asyncio.Semaphore(self._size)
            self._idle = []
            self._guardian = self._guard()
            await anext(self._guardian)

    async def _guard(self) -> AsyncGenerator[None, None]:
        """A loop that ends (asyncio.run does so) first closes the generators that run in it."""
        try:
            yield
        finally:
            self.clear()
            if self._closing:
                await asyncio.wait(self._closing)

    def give(self, connection: C) -> None:
        """Back from an operation that went well."""
        if self._closed:
            self.discard(connection)
        else:
            self._idle.append(connection)
        self._free.release()

    def drop(self, connection: C) -> None:
        """Back from an operation that did not."""
        self.discard(connection)
        self._free.release()

    def clear(self) -> None:
        """Throw away what is idle: the server has gone, and with it all connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            self.discard(connection)

    def discard(self, connection: C) -> None:
        """Close behind the caller's back, which may have been cancelled and must not wait."""
        closing = asyncio.ensure_future(self._close(connection))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        self._closed = True
        if self._guardian is not None and self._loop is asyncio.get_running_loop():
            await self._guardian.aclose()


def _refuse_if(closed: bool) -> None:
    if closed:
        raise StoreUnusable("This store was closed: open it again.")
