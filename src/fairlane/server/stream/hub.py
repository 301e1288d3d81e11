"""Following the journal on behalf of all who listen to a server process.

One reader looks at the journal every few hundredths of a second, while anybody listens. Hints would
not spare it that: they tell of new work only, and may get lost. A client that comes back with a
cursor first reads the past by itself, at its own pace, until it has met the reader.
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
from fairlane.server.http.faults import Busy
from fairlane.server.store_guard import StoreGuard
from fairlane.server.stream.clients import (
    BROKEN,
    STOPPING,
    UNWELCOME,
    Client,
    Ending,
)
from fairlane.server.stream.figures import figures_of
from fairlane.server.stream.items import notice
from fairlane.server.stream.reading import Reader, Stretch
from fairlane.wire.events import Notice

logger = logging.getLogger("fairlane.server")

LOOK_SECONDS: Final = 0.03
FIGURES_SECONDS: Final = 1.0
WELCOME_SECONDS: Final = 2.0
"""How often it is looked whether clients may still listen."""
CURSOR_SECONDS: Final = 10.0
"""How often clients that hear nothing are told how far they have come."""
READERS: Final = 4
"""Clients that read the past at the same time."""


class Hub:
    """All who listen to a server process."""

    def __init__(self, store: StoreGuard, stopping: asyncio.Event, most: int) -> None:
        self.reader = Reader(store)
        self._store = store
        self._stopping = stopping
        self._most = most
        self._guests: set[Client] = set()
        self._live: dict[Client, None] = {}
        """Those who have met the reader."""
        self._cursor: str | None = None
        self._beginning = asyncio.Lock()
        self._past = asyncio.Semaphore(READERS)
        self._work: list[asyncio.Task[None]] = []

    @property
    def listening(self) -> int:
        """How many listen."""
        return len(self._guests)

    def check_room(self) -> None:
        """Raise Busy unless one more may listen."""
        if self._stopping.is_set() or len(self._guests) >= self._most:
            raise Busy("Too many clients listen to this server: try again in a moment.")

    @contextmanager
    def guest(self, client: Client) -> Iterator[None]:
        """Look after a client."""
        self._guests.add(client)
        if not self._work:
            loop = asyncio.get_running_loop()
            tasks = (self._follow, self._measure, self._check, self._note, self._watch)
            self._work = [loop.create_task(self._kept(each)) for each in tasks]
        try:
            yield
        finally:
            self._guests.discard(client)
            self._live.pop(client, None)
            if not self._guests:
                self._rest()

    async def past(self, cursor: str | None) -> Stretch:
        """The beginning of what a client has missed since a cursor; without one, nothing was.

        Raises InvalidCursor.
        """
        if cursor is None:
            return Stretch([], await self.reader.tail(), reset=False, full=False)
        async with self._past:
            return await self.reader.resume(cursor)

    async def tell(self, client: Client, past: Stretch) -> None:
        """Tell a client of the past, and have it told of what happens from then on."""
        while client.ending is None:
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
        """Nobody listens any more."""
        self._dismiss(STOPPING)
        work = self._work
        self._rest()
        await asyncio.gather(*work, return_exceptions=True)

    def _rest(self) -> None:
        for task in self._work:
            task.cancel()
        self._work = []
        self._cursor = None

    def _dismiss(self, ending: Ending) -> None:
        for client in list(self._guests):
            client.end(ending)

    # -- what goes on while somebody listens -------------------------------------------------------

    async def _kept(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something over and over, however often the store is away."""
        backoff = Backoff()
        while True:
            try:
                await work()
                backoff = Backoff()
            except StoreError as error:
                logger.warning("Live events have to wait: %s", error)
                await asyncio.sleep(backoff.next())
            except Exception:
                logger.exception("Live events have come to an end")
                self._dismiss(BROKEN)
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
        wanting = [client for client in self._live if client.subscription.figures]
        if wanting:
            figures = figures_of(await self._store.run(self._store.ops.facts()))
            for client in wanting:
                client.offer_figures(figures)

    async def _check(self) -> None:
        await asyncio.sleep(WELCOME_SECONDS)
        for client in list(self._guests):
            if not await client.welcome():
                client.end(UNWELCOME)

    async def _note(self) -> None:
        await asyncio.sleep(CURSOR_SECONDS)
        for client in self._live:
            if client.after is None and client.cursor != self._cursor:
                client.put(notice(Notice.CURSOR, cursor=self._cursor))

    async def _watch(self) -> None:
        await self._stopping.wait()
        self._dismiss(STOPPING)
        await asyncio.sleep(CURSOR_SECONDS)
