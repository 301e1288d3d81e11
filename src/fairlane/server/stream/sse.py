"""Live events over plain HTTP: server-sent events, which browsers resume themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from fairlane.server.responses import Response, Send
from fairlane.server.stream.clients import GONE, Client, accompany
from fairlane.server.stream.hub import Hub
from fairlane.server.stream.items import Item
from fairlane.server.stream.reader import Stretch

KIND: Final = b"text/event-stream"
IDLE_SECONDS: Final = 15.0
"""Proxies close connections that are silent for long."""
KEEP_ALIVE: Final = b":\n\n"


class EventStream(Response, frozen=True, kw_only=True):
    """A response that goes on until the client leaves."""

    hub: Hub
    client: Client
    past: Stretch
    left: Callable[[], Awaitable[None]]

    async def send(self, send: Send, *, bodiless: bool = False) -> None:
        """Send events until the client ends."""
        headers = [(b"content-type", KIND), (b"x-accel-buffering", b"no"), *self.guards]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if not bodiless:
            with self.hub.guest(self.client):
                catching_up = self.hub.catch_up(self.client, self.past)
                await accompany(
                    self.client, self._send_items(send), catching_up, self._end_when_gone()
                )
        await send({"type": "http.response.body", "body": b""})

    async def _send_items(self, send: Send) -> None:
        client = self.client
        body = KEEP_ALIVE
        while client.closing is None:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    body = _encode(await client.take())
            except TimeoutError:
                body = KEEP_ALIVE

    async def _end_when_gone(self) -> None:
        await self.left()
        self.client.end(GONE)


def _encode(items: Iterable[Item]) -> bytes:
    lines = []
    for item in items:
        if item.cursor is not None:
            lines.append(f"id: {item.cursor}\n")
        lines.append(f"event: {item.type}\ndata: {item.text}\n\n")
    return "".join(lines).encode()
