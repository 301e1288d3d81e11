"""Clients of live events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.server.http.kit import SECONDS, Client, Reply
from tests.server.kit import Api
from tests.server.workers import until

NOTICES = frozenset({"ready", "cursor", "reset", "error"})


class Listener:
    """A client of `/ws` that remembers what it heard, and where it was."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self.cursor: str | None = None

    async def next(self) -> dict[str, Any]:
        """The next event."""
        async with asyncio.timeout(SECONDS):
            event: dict[str, Any] = json.loads(await self.socket.recv())
        assert set(event) | {"cursor"} == {"type", "timestamp", "data", "cursor"}
        self.cursor = event.get("cursor", self.cursor)
        self.heard.append(event)
        return event

    async def until(self, type: str) -> dict[str, Any]:
        """The next event of a type."""
        while (event := await self.next())["type"] != type:
            pass
        return event

    async def subscribe(self, **fields: Any) -> None:
        """Send a subscription, and wait until it counts."""
        await self.socket.send(json.dumps(fields))
        await self.until("ready")

    async def closed(self) -> tuple[int | None, str]:
        """How the server closes the connection."""
        try:
            while True:
                await self.next()
        except ConnectionClosed as closed:
            return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (None, "")

    def told(self) -> list[tuple[str, str]]:
        """What it heard of tasks and workers: types and whom they are about."""
        return [
            (event["type"], event["data"].get("task_id", event["data"].get("worker_id")))
            for event in self.heard
            if event["type"] not in NOTICES
        ]


class Stream:
    """A client of server-sent events."""

    def __init__(self, client: Client) -> None:
        self._reader = client._reader
        self._text = ""

    async def next(self) -> dict[str, str]:
        """The fields of the next event."""
        async with asyncio.timeout(SECONDS):
            while True:
                event, blank, self._text = self._text.partition("\n\n")
                if not blank:
                    self._text = event + await self._chunk()
                elif not event.startswith(":"):
                    return dict(line.split(": ", 1) for line in event.splitlines())

    async def _chunk(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise ConnectionResetError("the server is gone")
        size = int(line, 16)
        assert size, "the stream has ended"
        return (await self._reader.readexactly(size + 2))[:-2].decode()


def address(api: Api, cursor: str | None = None, query: str = "") -> str:
    """Of `/ws`."""
    parts = [*([f"cursor={cursor}"] if cursor else []), *([query] if query else [])]
    return f"ws://127.0.0.1:{api.port}/ws" + ("?" + "&".join(parts) if parts else "")


@asynccontextmanager
async def listening(
    api: Api,
    cursor: str | None = None,
    query: str = "",
    *,
    ready: bool = True,
    headers: Sequence[tuple[str, str]] = (),
    **options: Any,
) -> AsyncIterator[Listener]:
    """A client that hears all that happens from now on, or from a cursor on."""
    # It may leave with much unread, and then does not see the server's goodbye.
    options = {"additional_headers": headers, "proxy": None, "close_timeout": 0.2, **options}
    async with connect(address(api, cursor, query), **options) as socket:
        listener = Listener(socket)
        if ready:
            await listener.until("ready")
        yield listener


async def caught_up(api: Api) -> None:
    """Wait until the server has seen all that happened by now."""
    tail = await api.services.hub.reader.tail()
    await until(lambda: api.services.hub._cursor == tail)


UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec_websocket_version": "13",
}


async def upgraded(api: Api, path: str = "/ws", **headers: str) -> tuple[Client, Reply]:
    """A connection that asked for WebSocket, and the answer."""
    if not api.clients:
        await api.connect()  # for `ask`, which takes the first one
    client = await api.connect()
    return client, await client.ask(api.request("GET", path, **UPGRADE, **headers))


async def knock(api: Api, path: str = "/ws", **headers: str) -> Reply:
    """The answer to the wish for a WebSocket; if it is granted, the client leaves."""
    client, reply = await upgraded(api, path, **headers)
    if reply.status == 101:
        await client.close()
    return reply


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """A frame of a client, masked with zeros; of at most 125 bytes."""
    assert len(payload) < 126
    return bytes([opcode | 0x80 * fin, 0x80 | len(payload)]) + b"\0\0\0\0" + payload
