"""Calls of this engine's operations: how they are sent, and how replies are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec

from fairlane.core.errors import BatchTooLarge, NotAFairlaneStore
from fairlane.core.flow import Flow
from fairlane.engines.http.address import Address
from fairlane.engines.http.errors import error_of
from fairlane.http_client import Reply, Request

T = TypeVar("T")

MOST_BYTES: Final = 16 * 1024 * 1024
"""The largest body that a server accepts."""
REPLY_SECONDS: Final = 30.0
"""How long a reply may take, beyond the time that the server was asked to wait."""
IDLE: Final = 16
"""How many idle connections are kept."""
NO_CONTENT: Final = 204
CLOSED: Final = "This application has closed its connections to the server."

_encode: Final = msgspec.json.Encoder().encode
_OK: Final = range(200, 300)


class Call(NamedTuple):
    """A call of the API. `seconds`: how long the server may wait before it replies."""

    method: str
    path: str
    body: bytes | None = None
    seconds: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    """Further ones."""


class Head:
    """The parts that all requests to a server have in common."""

    def __init__(self, address: Address, token: str | None) -> None:
        self.address = address
        self._headers = [
            ("host", address.authority),
            ("user-agent", "fairlane"),
            ("accept", "application/json"),
        ]
        if token is not None:
            self._headers.append(("authorization", f"Bearer {token}"))

    def request(self, call: Call) -> Request:
        """Return the request for a call."""
        headers, body = self._headers, call.body or b""
        if call.method != "GET":
            length = ("content-length", str(len(body)))
            kind = ("content-type", "application/json")
            headers = [*headers, length, kind, *call.headers]
        target = self.address.prefix + call.path
        return Request(call.method, target, headers, body)


def get(path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> Flow[T]:
    """GET a path. Lists in the query become repeated parameters."""
    target = f"{path}?{urlencode(query, doseq=True)}" if query else path
    return (yield from send(Call("GET", target), kind))


def post(path: str, body: Any, kind: type[T], seconds: float = 0.0) -> Flow[T]:
    """POST a body, which becomes JSON."""
    return (yield from send(Call("POST", path, encode(body), seconds), kind))


def send(call: Call, kind: type[T]) -> Flow[T]:
    """Make a call, and return the decoded reply. Raises the error that the server reports."""
    reply: Reply = yield call
    return decode(reply, kind)


def decode(reply: Reply, kind: type[T]) -> T:
    """Return the decoded reply. Raises the error that the server reports."""
    if reply.status not in _OK:
        raise error_of(reply)
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(cast(Any, kind))
        found = decoder.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotAFairlaneStore(
            f"The reply of the server cannot be decoded ({error}): it is another version, or not a "
            "Fairlane server."
        ) from None
    return found


def encode(body: Any) -> bytes:
    """Return a body as JSON. Raises BatchTooLarge."""
    sent = _encode(body)
    if len(sent) > MOST_BYTES:
        raise BatchTooLarge(
            f"This is {len(sent):,} bytes, and a server takes {MOST_BYTES:,} at once: send it in "
            "smaller batches."
        )
    return sent


def part(name: str) -> str:
    """Return a name as part of a path."""
    return quote(name, safe="")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
