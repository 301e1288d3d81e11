"""Errors of requests that are refused before the application sees them."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope

from fairlane.server.errors import HttpError, UnsupportedMediaType, response_to
from fairlane.server.responses import Send


class BadRequest(HttpError):
    """This is not valid HTTP."""

    code = "bad_request"


class TooSlow(HttpError):
    """The request did not arrive in time."""

    code = "request_timeout"
    status = 408


class UrlTooLong(HttpError):
    """The URL is too long."""

    code = "url_too_long"
    status = 414


class Compressed(UnsupportedMediaType):
    """The body must not be compressed: send it without Content-Encoding."""


class HeadersTooLarge(HttpError):
    """The headers are too large, or too many."""

    code = "headers_too_large"
    status = 431


class Busy(HttpError):
    """The server is overloaded: try again in a moment."""

    code = "busy"
    status = 503

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers=((b"retry-after", b"1"),))


class WrongVersion(HttpError):
    """The server speaks HTTP/1.1 and HTTP/1.0."""

    code = "unsupported_http_version"


STOPPING = "The server is being stopped: try again in a moment."


def closing_response(fault: HttpError, defaults: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of an error response after which the connection is closed."""
    response = response_to(fault)
    body = msgspec.json.encode(response.body)
    lines = [
        b"HTTP/1.1 %d %s" % (response.status, HTTPStatus(response.status).phrase.encode()),
        *(b"%s: %s" % header for header in (*defaults, *response.guards, *response.headers)),
        b"content-type: " + response.kind,
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    return b"\r\n".join((*lines, b"", body))


class RefusingApp:
    """An ASGI application that refuses a request, and keeps the connection open."""

    def __init__(self, fault: HttpError) -> None:
        self._response = response_to(fault)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await self._response.send(send, bodiless=scope["method"] == "HEAD")
