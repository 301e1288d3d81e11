"""`/ws`: live events over WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from fairlane.server.admission import Windows
from fairlane.server.answers import Answer, Send
from fairlane.server.errors import NotJson, TooMany, Unfit, answer_to
from fairlane.server.gate import Gate, welcome
from fairlane.server.operations import READ
from fairlane.server.requests import Receive, Scope, decoded, headers_of, query_of
from fairlane.server.services import Services
from fairlane.server.stream.clients import GONE, Client, Ending, accompany
from fairlane.server.stream.items import notice
from fairlane.server.stream.reading import Stretch
from fairlane.server.stream.subscriptions import by_message, by_query
from fairlane.wire.events import EventQuery, Notice, Subscribe

MESSAGES: Final = 100
MESSAGES_SECONDS: Final = 10.0
"""So many messages may a client send in so many seconds."""
REASON_BYTES: Final = 123
"""What fits into a frame that closes."""

UNSUPPORTED: Final = 1003
POLICY: Final = 1008

_decoder: Final = msgspec.json.Decoder(Subscribe)


class LiveSocket:
    """An ASGI application for WebSockets."""

    def __init__(self, services: Services, gate: Gate) -> None:
        self._services = services
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._services.start()
        await receive()  # that it wants to connect
        try:
            client, past = await self._entered(scope)
        except Exception as error:  # noqa: BLE001 (every way out is decided in one place)
            await _refuse(scope, send, answer_to(error))
            return
        with self._services.hub.guest(client):
            await send({"type": "websocket.accept"})
            await self._converse(client, past, receive, send)

    async def _entered(self, scope: Scope) -> tuple[Client, Stretch]:
        headers = headers_of(scope)
        await self._gate.admitted(scope, headers, READ)
        query: EventQuery = query_of(scope, EventQuery)
        client = Client(by_query(query), welcome(self._services.keys, headers))
        past = await self._services.hub.past(query.cursor)
        self._services.hub.check_room()  # after all that takes time
        return client, past

    async def _converse(self, client: Client, past: Stretch, receive: Receive, send: Send) -> None:
        telling = self._services.hub.tell(client, past)
        await accompany(client, _sent(client, send), telling, _heard(client, receive))
        assert client.ending is not None
        code, reason = client.ending
        if code is not None:
            with suppress(OSError, RuntimeError):  # it has gone in the meantime
                await send({"type": "websocket.close", "code": code, "reason": _cut(reason)})


async def _heard(client: Client, receive: Receive) -> None:
    """What a client says."""
    pace = Windows(MESSAGES, MESSAGES_SECONDS)
    while (message := await receive())["type"] == "websocket.receive":
        try:
            pace.take("", 1)
            subscription = by_message(_read(message))
        except (NotJson, Unfit, TooMany) as error:
            data = {"code": error.code, "message": error.message}
            code = UNSUPPORTED if isinstance(error, NotJson) else POLICY
            client.end(Ending(code, error.message), notice(Notice.ERROR, data))
            return
        client.subscribe(subscription, client.cursor)
    client.end(GONE)


def _read(message: MutableMapping[str, Any]) -> Subscribe:
    text = message.get("text")
    if text is None:
        raise NotJson("Messages are texts, and JSON.")
    return decoded(_decoder, text.encode())


async def _sent(client: Client, send: Send) -> None:
    """Send what there is to send, for as long as it is read."""
    try:
        while items := await client.take():
            for item in items:
                await send({"type": "websocket.send", "text": item.text})
            await asyncio.sleep(0)  # others have their turn
    except RuntimeError:  # it was closed, and nobody has said so here yet
        client.end(GONE)


async def _refuse(scope: Scope, send: Send, answer: Answer) -> None:
    """Answer in place of a handshake."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": POLICY})
        return

    async def relay(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await answer.send(relay)


def _cut(reason: str) -> str:
    return reason.encode()[:REASON_BYTES].decode(errors="ignore")
