"""`/ws`: live events over WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from fairlane.core.tokens import Scope as TokenScope
from fairlane.server.admission import RateWindows
from fairlane.server.auth import Authenticator, TokenCache, may_keep_reading
from fairlane.server.errors import InvalidJson, InvalidRequest, TooManyRequests, response_to
from fairlane.server.requests import Receive, Scope, decode, headers_of, query_of
from fairlane.server.responses import POLICY, Send
from fairlane.server.stream.clients import GONE, Client, Closing, accompany
from fairlane.server.stream.hub import Hub
from fairlane.server.stream.items import notice
from fairlane.server.stream.reader import Stretch
from fairlane.server.stream.subscriptions import by_message, by_query
from fairlane.wire.events import EventQuery, Notice, Subscribe

MESSAGES: Final = 100
MESSAGES_SECONDS: Final = 10.0
"""A client may send `MESSAGES` messages in this time."""
REASON_BYTES: Final = 123
"""What fits into a close frame."""

UNSUPPORTED: Final = 1003

_READ: Final = frozenset({TokenScope.READ})
_decoder: Final = msgspec.json.Decoder(Subscribe)


class LiveSocket:
    """An ASGI application for WebSockets. `start` starts the server, if it has not started."""

    def __init__(
        self, hub: Hub, auth: Authenticator, tokens: TokenCache, start: Callable[[], None]
    ) -> None:
        self._hub = hub
        self._auth = auth
        self._tokens = tokens
        self._start = start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._start()
        await receive()  # the wish to connect
        try:
            client, past = await self._admit(scope)
        except Exception as error:  # noqa: BLE001 (all errors become responses in one place)
            await response_to(error).refuse_socket(scope, send)
            return
        with self._hub.guest(client):
            await send({"type": "websocket.accept"})
            await self._converse(client, past, receive, send)

    async def _admit(self, scope: Scope) -> tuple[Client, Stretch]:
        headers = headers_of(scope)
        await self._auth.authenticate(None, headers, _READ)
        query: EventQuery = query_of(scope, EventQuery)
        client = Client(by_query(query), may_keep_reading(self._tokens, headers))
        past = await self._hub.past(query.cursor)
        self._hub.check_room()  # last, because all of the above takes time
        return client, past

    async def _converse(self, client: Client, past: Stretch, receive: Receive, send: Send) -> None:
        catching_up = self._hub.catch_up(client, past)
        await accompany(client, _send_items(client, send), catching_up, _receive(client, receive))
        assert client.closing is not None
        code, reason = client.closing
        if code is not None:
            with suppress(OSError, RuntimeError):  # the client has left in the meantime
                await send({"type": "websocket.close", "code": code, "reason": _cut(reason)})


async def _receive(client: Client, receive: Receive) -> None:
    """Receive the messages of a client: each replaces its subscription."""
    pace = RateWindows(MESSAGES, MESSAGES_SECONDS)
    while (message := await receive())["type"] == "websocket.receive":
        try:
            pace.take("", 1)
            subscription = by_message(_read(message))
        except (InvalidJson, InvalidRequest, TooManyRequests) as error:
            data = {"code": error.code, "message": error.message}
            code = UNSUPPORTED if isinstance(error, InvalidJson) else POLICY
            client.end(Closing(code, error.message), notice(Notice.ERROR, data))
            return
        client.subscribe(subscription, client.cursor)
    client.end(GONE)


def _read(message: MutableMapping[str, Any]) -> Subscribe:
    text = message.get("text")
    if text is None:
        raise InvalidJson("Messages are texts, and JSON.")
    return decode(_decoder, text.encode())


async def _send_items(client: Client, send: Send) -> None:
    """Send a client its items until it ends."""
    try:
        while items := await client.take():
            for item in items:
                await send({"type": "websocket.send", "text": item.text})
            await asyncio.sleep(0)  # let other clients have their turn
    except RuntimeError:  # the connection was closed, and the client does not know yet
        client.end(GONE)


def _cut(reason: str) -> str:
    return reason.encode()[:REASON_BYTES].decode(errors="ignore")
