"""Following the journal for all clients of a server process.

One reader polls the journal every 30 ms while there are clients. Hints from the store could not
replace polling: they announce new work only, and may get lost. A client that returns with a cursor
first reads the past at its own pace, until it has caught up with the reader.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fairlane.backoff import Backoff
from fairlane.core.errors import StoreError
from fairlane.core.journal import place_of
from fairlane.server.http.errors import Busy
from fairlane.server.store_guard import StoreGuard
from fairlane.server.stream.clients import (
    BROKEN,
    REVOKED,
    STOPPING,
    Client,
    Closing,
)
from fairlane.server.stream.figures import figures_of
from fairlane.server.stream.items import notice
from fairlane.server.stream.reader import Reader, Stretch
from fairlane.server.stream.skips import Skips
from fairlane.server.stream.workflows import WorkflowFeed
from fairlane.wire.events import STATES, WORKFLOWS, EventType, Notice

logger = logging.getLogger("fairlane.server")

LOOK_SECONDS: Final = 0.03
FIGURES_SECONDS: Final = 1.0
ALLOWED_SECONDS: Final = 2.0
"""How often the hub checks whether clients may still listen."""
CURSOR_SECONDS: Final = 10.0
"""How often clients without events get a new cursor."""
_SKIPPED: Final = frozenset({EventType.SKIPPED})
READERS: Final = 4
"""How many clients may read the past at the same time."""


class Hub:
    """All clients of a server process."""

    def __init__(self, store: StoreGuard, stopping: asyncio.Event, most: int) -> None:
        self.reader = Reader(store)
        self._store = store
        self._stopping = stopping
        self._most = most
        self._clients: set[Client] = set()
        self._live: dict[Client, None] = {}
        """Those that have caught up with the reader."""
        self._cursor: str | None = None
        self._beginning = asyncio.Lock()
        self._past = asyncio.Semaphore(READERS)
        self._work: list[asyncio.Task[None]] = []
        self._skips = Skips()
        self._workflows = WorkflowFeed()

    @property
    def listening(self) -> int:
        """How many clients there are."""
        return len(self._clients)

    def check_room(self) -> None:
        """Raise Busy if there is no room for another client."""
        if self._stopping.is_set() or len(self._clients) >= self._most:
            raise Busy("Too many clients listen to this server: try again in a moment.")

    @contextmanager
    def guest(self, client: Client) -> Iterator[None]:
        """Serve a client inside this block."""
        self._clients.add(client)
        if not self._work:
            loop = asyncio.get_running_loop()
            tasks = (
                self._follow,
                self._measure,
                self._check_allowed,
                self._send_cursors,
                self._watch,
            )
            self._work = [loop.create_task(self._repeat(each)) for each in tasks]
        try:
            yield
        finally:
            self._clients.discard(client)
            self._live.pop(client, None)
            if not self._clients:
                self._stop_work()

    async def past(self, cursor: str | None) -> Stretch:
        """Return the first part of what happened since a cursor; nothing without a cursor.

        Raises InvalidCursor.
        """
        if cursor is None:
            return Stretch([], await self.reader.tail(), reset=False, full=False)
        async with self._past:
            return await self.reader.resume(cursor)

    async def catch_up(self, client: Client, past: Stretch) -> None:
        """Send a client the past, until it can follow live."""
        while client.closing is None:
            if past.reset:
                client.put(notice(Notice.RESET))
            client.offer(past.items)
            reached = place_of(past.cursor)
            if reached >= place_of(await self._position()):
                client.after = reached
                client.begin(past.cursor)
                self._live[client] = None
                return
            await client.room()
            async with self._past:
                past = await self.reader.read(past.cursor)

    async def _position(self) -> str:
        async with self._beginning:
            if self._cursor is None:
                self._cursor = await self.reader.tail()
            return self._cursor

    async def stop(self) -> None:
        """End all clients."""
        self._end_all(STOPPING)
        work = self._work
        self._stop_work()
        await asyncio.gather(*work, return_exceptions=True)

    def _stop_work(self) -> None:
        self._skips.forget()
        self._workflows.forget()
        for task in self._work:
            task.cancel()
        self._work = []
        self._cursor = None

    def _end_all(self, closing: Closing) -> None:
        for client in list(self._clients):
            client.end(closing)

    # -- background work, while there are clients --------------------------------------------------

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat a piece of work, however often the store is away."""
        backoff = Backoff()
        while True:
            try:
                await work()
                backoff = Backoff()
            except StoreError as error:
                logger.warning("Live events are delayed: %s", error)
                await asyncio.sleep(backoff.next())
            except Exception:
                logger.exception("Live events failed")
                self._end_all(BROKEN)
                await asyncio.sleep(backoff.next())

    async def _follow(self) -> None:
        began = time.monotonic()
        cursor = await self._position()
        progress = any(client.subscription.progress for client in self._live)
        stretch = await self.reader.read(cursor, progress=progress)
        live = list(self._live)
        if stretch.reset:
            for client in live:
                client.after = None
                client.put(notice(Notice.RESET))
        for client in live:
            client.offer(stretch.items)
        self._cursor = stretch.cursor
        if not stretch.full:
            await asyncio.sleep(LOOK_SECONDS - (time.monotonic() - began))
        else:
            await asyncio.sleep(0)

    async def _measure(self) -> None:
        await asyncio.sleep(FIGURES_SECONDS)
        if wanting := self._wanting(STATES):
            facts = await self._store.run(self._store.ops.facts())
            figures = await asyncio.to_thread(figures_of, facts)
            for client in wanting:
                client.offer_figures(figures)
        if wanting := self._wanting(_SKIPPED):
            skips = self._skips.take(await self._store.run(self._store.ops.tick_counts()))
            for client in wanting:
                client.offer_apart(skips)
        else:
            self._skips.forget()
        if wanting := self._wanting(WORKFLOWS):
            news = self._workflows.take(await self._store.run(self._store.ops.workflow_news()))
            for client in wanting:
                client.offer_apart(news)
        else:
            self._workflows.forget()

    def _wanting(self, types: frozenset[EventType]) -> list[Client]:
        return [client for client in self._live if client.subscription.names_any(types)]

    async def _check_allowed(self) -> None:
        await asyncio.sleep(ALLOWED_SECONDS)
        for client in list(self._clients):
            if not await client.allowed():
                client.end(REVOKED)

    async def _send_cursors(self) -> None:
        await asyncio.sleep(CURSOR_SECONDS)
        for client in self._live:
            if client.after is None and client.cursor != self._cursor:
                client.put(notice(Notice.CURSOR, cursor=self._cursor))

    async def _watch(self) -> None:
        await self._stopping.wait()
        self._end_all(STOPPING)
        await asyncio.sleep(CURSOR_SECONDS)
