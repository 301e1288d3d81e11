"""What the operations of this engine ask of its driver, and what they make of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec

from fairlane.core.errors import BatchTooLarge, NotAFairlaneStore
from fairlane.core.flow import Flow
from fairlane.engines.http.errors import Reply, error_of

T = TypeVar("T")

MOST_BYTES: Final = 16 * 1024 * 1024
"""What a server takes at once."""

_encode: Final = msgspec.json.Encoder().encode
_OK: Final = range(200, 300)


class Request(NamedTuple):
    """A request. `seconds`: how long the server may keep its answer back, at the caller's wish."""

    method: str
    path: str
    body: bytes | None = None
    seconds: float = 0.0


def get(path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> Flow[T]:
    """What there is at a path; lists in the query are repeated."""
    target = f"{path}?{urlencode(query, doseq=True)}" if query else path
    return (yield from asked(Request("GET", target), kind))


def post(path: str, body: Any, kind: type[T], seconds: float = 0.0) -> Flow[T]:
    """The answer to a body, which becomes JSON."""
    return (yield from asked(Request("POST", path, encoded(body), seconds), kind))


def asked(request: Request, kind: type[T]) -> Flow[T]:
    """The answer to a request, read. Raises what the server says went wrong."""
    reply: Reply = yield request
    return read(reply, kind)


def read(reply: Reply, kind: type[T]) -> T:
    """An answer, read. Raises what the server says went wrong."""
    if reply.status not in _OK:
        raise error_of(reply)
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(cast(Any, kind))
        found = decoder.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotAFairlaneStore(
            f"The server answers in a way that is not understood here ({error}): it is of another "
            "version, or no Fairlane server at all."
        ) from None
    return found


def encoded(body: Any) -> bytes:
    """A body as it is sent. Raises BatchTooLarge."""
    sent = _encode(body)
    if len(sent) > MOST_BYTES:
        raise BatchTooLarge(
            f"This is {len(sent):,} bytes, and a server takes {MOST_BYTES:,} at once: send it in "
            "smaller batches."
        )
    return sent


def part(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
