"""Those who listen: what each of them still has to be sent, and why it ends."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, NamedTuple

from fairlane.core.errors import StoreError
from fairlane.core.journal import Place
from fairlane.server.stream.items import Item, notice
from fairlane.server.stream.subscriptions import Subscription
from fairlane.wire.events import Notice

logger = logging.getLogger("fairlane.server")

MOST_BYTES: Final = 2 * 1024 * 1024
"""What may wait for a client. It must hold what is read of the journal at once."""
ROOM_BYTES: Final = MOST_BYTES // 4
PIECE_BYTES: Final = 64 * 1024
LAST_SECONDS: Final = 1.0
"""How long a client may take to be told why it is dropped."""


class Ending(NamedTuple):
    """Why a client is no longer told anything, as WebSocket says it. Without a code: it left."""

    code: int | None
    reason: str = ""


GONE: Final = Ending(None)
STOPPING: Final = Ending(1012, "The server is being stopped: come back with your cursor.")
SLOW: Final = Ending(1013, "Events were not read fast enough: come back with your cursor.")
UNWELCOME: Final = Ending(1008, "The token was revoked, or has expired.")
AWAY: Final = Ending(1013, "The store is away: come back in a moment with your cursor.")
BROKEN: Final = Ending(1011, "Something went wrong in the server.")

Welcome = Callable[[], Awaitable[bool]]
"""Whether a client may still listen."""


class Client:
    """One of those who listen. Nobody waits for it: what it does not read in time is too much."""

    def __init__(self, subscription: Subscription, welcome: Welcome) -> None:
        self.subscription = subscription
        self.welcome = welcome
        self.after: Place | None = None
        """What lies before this in the journal, it knows already."""
        self.cursor: str | None = None
        """The last one that it was given."""
        self.ending: Ending | None = None
        self.ended = asyncio.Event()
        self._figures: dict[object, int] = {}
        self._pending: OrderedDict[object, Item] = OrderedDict()
        self._bytes = 0
        self._live = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    def begin(self, cursor: str | None) -> None:
        """The past has been told: from here on it hears what happens."""
        self._live = True
        self.subscribe(self.subscription, cursor)

    def subscribe(self, subscription: Subscription, cursor: str | None) -> None:
        """Go by another subscription from here on. Before it is live it is told so once it is."""
        self.subscription = subscription
        self._figures.clear()
        if self._live:
            self.put(notice(Notice.READY, subscription.shown(), cursor))

    def offer(self, items: Iterable[Item]) -> None:
        """News from the journal."""
        wants = self.subscription.wants
        for item in items:
            if self.after is not None:
                if item.place <= self.after:
                    continue
                self.after = None
            if wants(item):
                self.put(item)

    def offer_figures(self, figures: Iterable[tuple[Item, int]]) -> None:
        """Figures, each with a number that tells whether it changed."""
        for item, mark in figures:
            if self._figures.get(item.key) != mark and self.subscription.wants(item):
                self._figures[item.key] = mark
                self.put(item)

    def put(self, item: Item) -> None:
        """Send this, in its turn."""
        if self.ending is not None:
            return
        key = id(item) if item.key is None else item.key
        replaced = self._pending.pop(key, None)
        if replaced is not None:
            self._bytes -= len(replaced.text)
        self._pending[key] = item
        self._bytes += len(item.text)
        if item.cursor is not None:
            self.cursor = item.cursor
        if self._bytes > MOST_BYTES:
            self.end(SLOW)
        else:
            self._news.set()

    def end(self, ending: Ending, last: Item | None = None) -> None:
        """Tell it no more, but for this."""
        if self.ending is not None:
            return
        self._pending.clear()
        self._bytes = 0
        if last is not None:
            self.put(last)
        self.ending = ending
        self.ended.set()
        self._news.set()
        self._room.set()

    async def take(self) -> list[Item]:
        """The next items to send, as soon as there are some; none when it has ended."""
        await self._news.wait()
        taken: list[Item] = []
        size = 0
        while self._pending and size < PIECE_BYTES:
            _, item = self._pending.popitem(last=False)
            size += len(item.text)
            taken.append(item)
        self._bytes -= size
        if not self._pending and self.ending is None:
            self._news.clear()
        if self._bytes < ROOM_BYTES:
            self._room.set()
        return taken

    async def room(self) -> None:
        """Wait until there is room for more of the past, or it has ended."""
        while self._bytes >= ROOM_BYTES and self.ending is None:
            self._room.clear()
            await self._room.wait()


async def accompany(client: Client, *work: Coroutine[Any, Any, None]) -> None:
    """Do for a client what is to be done at the same time, until it ends. The first of that is to
    send it what there is to send, and may finish."""
    tasks = [asyncio.create_task(_ending(client, each)) for each in work]
    try:
        await client.ended.wait()
        await asyncio.wait(tasks[:1], timeout=LAST_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ending(client: Client, work: Coroutine[Any, Any, None]) -> None:
    """Whatever goes wrong ends a client, rather than leave it without a word."""
    try:
        await work
    except StoreError:
        client.end(AWAY)
    except OSError:  # of ASGI: it has gone
        client.end(GONE)
    except Exception:
        logger.exception("A client of live events had to go")
        client.end(BROKEN)
