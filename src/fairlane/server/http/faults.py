"""What is refused before an application sees it."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope

from fairlane.server.answers import Send
from fairlane.server.errors import Refused, WrongMediaType, answer_to


class BadRequest(Refused):
    """This is not HTTP as a server can read it."""

    code = "bad_request"


class TooSlow(Refused):
    """The request did not arrive in time."""

    code = "request_timeout"
    status = 408


class UrlTooLong(Refused):
    """The URL is too long."""

    code = "url_too_long"
    status = 414


class Compressed(WrongMediaType):
    """The body must not be compressed: send it without Content-Encoding."""


class HeadersTooLarge(Refused):
    """The headers are too large, or too many."""

    code = "headers_too_large"
    status = 431


class Busy(Refused):
    """The server has too much to do: try again in a moment."""

    code = "busy"
    status = 503

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers=((b"retry-after", b"1"),))


class WrongVersion(Refused):
    """The server speaks HTTP/1.1 and HTTP/1.0."""

    code = "unsupported_http_version"


STOPPING = "The server is being stopped: try again in a moment."


def last_words(fault: Refused, defaults: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A refusal as it goes over the wire, when the connection is closed after it."""
    answer = answer_to(fault)
    body = msgspec.json.encode(answer.body)
    lines = [
        b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode()),
        *(b"%s: %s" % header for header in (*defaults, *answer.guards, *answer.headers)),
        b"content-type: " + answer.kind,
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    return b"\r\n".join((*lines, b"", body))


class Refusing:
    """An ASGI application that refuses, for when the connection can go on."""

    def __init__(self, fault: Refused) -> None:
        self._answer = answer_to(fault)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await self._answer.send(send, bodiless=scope["method"] == "HEAD")
