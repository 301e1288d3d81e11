"""Clients of live events: what each of them still has to be sent, and why it ends."""

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
"""What may wait to be sent to a client. One read of the journal must fit."""
ROOM_BYTES: Final = MOST_BYTES // 4
PIECE_BYTES: Final = 64 * 1024
LAST_SECONDS: Final = 1.0
"""How long sending the reason may take when a client is dropped."""


class Closing(NamedTuple):
    """Why a client gets no more events: a WebSocket close code and reason. No code: it left."""

    code: int | None
    reason: str = ""


GONE: Final = Closing(None)
STOPPING: Final = Closing(1012, "The server stops: connect again with your cursor.")
SLOW: Final = Closing(1013, "Events were not read fast enough: connect again with your cursor.")
REVOKED: Final = Closing(1008, "The token was revoked, or has expired.")
AWAY: Final = Closing(1013, "The store is away: connect again in a moment with your cursor.")
BROKEN: Final = Closing(1011, "Something went wrong in the server.")

Allowed = Callable[[], Awaitable[bool]]
"""Returns whether a client may still listen."""


class Client:
    """A client. Nothing waits for it: one that reads too slowly is dropped."""

    def __init__(self, subscription: Subscription, allowed: Allowed) -> None:
        self.subscription = subscription
        self.allowed = allowed
        self.after: Place | None = None
        """It knows the journal up to this place."""
        self.cursor: str | None = None
        """The last one that was queued for it."""
        self.closing: Closing | None = None
        self.ended = asyncio.Event()
        self._figures: dict[object, int] = {}
        self._pending: OrderedDict[object, Item] = OrderedDict()
        self._bytes = 0
        self._live = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    def begin(self, cursor: str | None) -> None:
        """Go live: the client has received the past, and gets new events from here on."""
        self._live = True
        self.subscribe(self.subscription, cursor)

    def subscribe(self, subscription: Subscription, cursor: str | None) -> None:
        """Replace the subscription. If the client is not live yet, the change takes effect once it
        is."""
        self.subscription = subscription
        self._figures.clear()
        if self._live:
            self.put(notice(Notice.READY, subscription.shown(), cursor))

    def offer(self, items: Iterable[Item]) -> None:
        """Queue those of these events that the client wants."""
        wants = self.subscription.wants
        for item in items:
            if self.after is not None:
                if item.place <= self.after:
                    continue
                self.after = None
            if wants(item):
                self.put(item)

    def offer_apart(self, items: Iterable[Item]) -> None:
        """Queue those of these events that the client wants. They are not from the journal."""
        for item in items:
            if self.subscription.wants(item):
                self.put(item)

    def offer_figures(self, figures: Iterable[tuple[Item, int]]) -> None:
        """Queue the figures that changed. Each comes with a hash of its content."""
        for item, digest in figures:
            if self._figures.get(item.key) != digest and self.subscription.wants(item):
                self._figures[item.key] = digest
                self.put(item)

    def put(self, item: Item) -> None:
        """Queue an item. It replaces an unsent one with the same key."""
        if self.closing is not None:
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

    def end(self, closing: Closing, last: Item | None = None) -> None:
        """End the client: drop what is queued, and send at most this item."""
        if self.closing is not None:
            return
        self._pending.clear()
        self._bytes = 0
        if last is not None:
            self.put(last)
        self.closing = closing
        self.ended.set()
        self._news.set()
        self._room.set()

    async def take(self) -> list[Item]:
        """Wait for items, and return the next ones to send; none when the client has ended."""
        await self._news.wait()
        taken: list[Item] = []
        size = 0
        while self._pending and size < PIECE_BYTES:
            _, item = self._pending.popitem(last=False)
            size += len(item.text)
            taken.append(item)
        self._bytes -= size
        if not self._pending and self.closing is None:
            self._news.clear()
        if self._bytes < ROOM_BYTES:
            self._room.set()
        return taken

    async def room(self) -> None:
        """Wait until there is room for more of the past, or the client has ended."""
        while self._bytes >= ROOM_BYTES and self.closing is None:
            self._room.clear()
            await self._room.wait()


async def accompany(client: Client, *work: Coroutine[Any, Any, None]) -> None:
    """Run the work of a client concurrently until the client ends. The first coroutine sends the
    items: it gets a moment to finish."""
    tasks = [asyncio.create_task(_end_on_error(client, each)) for each in work]
    try:
        await client.ended.wait()
        await asyncio.wait(tasks[:1], timeout=LAST_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _end_on_error(client: Client, work: Coroutine[Any, Any, None]) -> None:
    """End the client if its work fails."""
    try:
        await work
    except StoreError:
        client.end(AWAY)
    except OSError:  # how ASGI says that the client has left
        client.end(GONE)
    except Exception:
        logger.exception("Live events of a client failed")
        client.end(BROKEN)
