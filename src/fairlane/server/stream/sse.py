"""Live events over plain HTTP: server-sent events, which browsers resume by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from fairlane.server.answers import Answer, Send
from fairlane.server.stream.clients import GONE, Client, accompany
from fairlane.server.stream.hub import Hub
from fairlane.server.stream.items import Item
from fairlane.server.stream.reading import Stretch

KIND: Final = b"text/event-stream"
IDLE_SECONDS: Final = 15.0
"""Proxies close what says nothing for long."""
SIGN_OF_LIFE: Final = b":\n\n"


class EventStream(Answer, frozen=True, kw_only=True):
    """An answer without an end."""

    hub: Hub
    client: Client
    past: Stretch
    left: Callable[[], Awaitable[None]]

    async def send(self, send: Send, *, bodiless: bool = False) -> None:
        """Send events until the client leaves, or is told to."""
        headers = [(b"content-type", KIND), (b"x-accel-buffering", b"no"), *self.guards]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if not bodiless:
            with self.hub.guest(self.client):
                telling = self.hub.tell(self.client, self.past)
                await accompany(self.client, self._sent(send), telling, self._gone())
        await send({"type": "http.response.body", "body": b""})

    async def _sent(self, send: Send) -> None:
        client = self.client
        body = SIGN_OF_LIFE
        while client.ending is None:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    body = _encoded(await client.take())
            except TimeoutError:
                body = SIGN_OF_LIFE

    async def _gone(self) -> None:
        await self.left()
        self.client.end(GONE)


def _encoded(items: Iterable[Item]) -> bytes:
    lines = []
    for item in items:
        if item.cursor is not None:
            lines.append(f"id: {item.cursor}\n")
        lines.append(f"event: {item.type}\ndata: {item.text}\n\n")
    return "".join(lines).encode()
