"""Responses of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

import msgspec

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Final = b"application/json"
NO_CONTENT: Final = 204
"""A response with this status has no Content-Length."""
POLICY: Final = 1008
"""The close code of a WebSocket that is refused."""

# A response must not be framed, sniffed or cached, and must not load anything from elsewhere.
GUARDS: Final[Headers] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)

_encode: Final = msgspec.json.Encoder().encode


class Response(msgspec.Struct, frozen=True):
    """A status, headers and a body: bytes are sent as they are, None means no body, anything else
    becomes JSON."""

    body: Any = None
    status: int = 200
    headers: Headers = ()
    kind: bytes = JSON
    guards: Headers = GUARDS
    changed: bool = True
    """False: the operation was asked to change nothing, so that there is nothing to record."""

    async def send(self, send: Send, *, bodiless: bool = False) -> None:
        """Send the response. `bodiless`: without its body, as for HEAD."""
        body = self._content()
        headers = [*self.guards, *self.headers]
        if self.status != NO_CONTENT:
            headers.append((b"content-length", str(len(body)).encode()))
        if self.body is not None:
            headers.append((b"content-type", self.kind))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if bodiless else body})

    async def refuse_socket(self, scope: Mapping[str, Any], send: Send) -> None:
        """Send the response in place of the handshake of a WebSocket."""
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": POLICY})
            return

        async def relay(message: MutableMapping[str, Any]) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await self.send(relay)

    def _content(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else _encode(self.body)
