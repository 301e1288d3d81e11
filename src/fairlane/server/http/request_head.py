"""Checking the head of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httptools

from fairlane.server.errors import BodyTooLarge, HttpError
from fairlane.server.http.errors import BadRequest, Compressed, WrongVersion

if TYPE_CHECKING:
    from uvicorn._types import HTTPScope

HeaderList = list[tuple[bytes, bytes]]

_CHECKED: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"content-encoding", b"expect"}
)
_HOPS: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})


def check_head(headers: HeaderList, version: str, most: int) -> tuple[bool, HttpError | None]:
    """Return whether the client waits for "100 Continue", and the error if the request is refused.

    Raises errors after which the connection must be closed.
    """
    hosts, expects, refusal = 0, False, None
    for name, value in headers:
        if name in _CHECKED:
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                if int(value) > most:
                    raise BodyTooLarge(f"The body has more than {most:,} bytes: send less at once.")
            elif name == b"expect":
                expects = value.lower() == b"100-continue"
            elif name == b"content-encoding":
                if value.strip().lower() not in {b"", b"identity"}:
                    refusal = Compressed()
            elif value.strip().lower() != b"chunked" or version == "1.0":
                raise BadRequest("The only Transfer-Encoding is chunked, in HTTP/1.1.")
    if version not in {"1.1", "1.0"}:
        raise WrongVersion
    if hosts != 1 and (hosts or version == "1.1"):
        raise BadRequest("A request has one Host header.")
    return expects, refusal


def origin_form(method: str, url: bytes, headers: HeaderList) -> bytes:
    """Return the path and query of a URL that does not begin with a path.

    `http://host/path`, as for proxies, sets the Host header.
    """
    if url == b"*" and method == "OPTIONS":
        return url
    try:
        parsed: Any = httptools.parse_url(url)  # whose stubs say str for some of the bytes
    except httptools.HttpParserInvalidURLError:
        raise BadRequest("The URL of a request is a path.") from None
    if parsed.fragment is not None or parsed.schema not in {b"http", b"https"} or not parsed.host:
        raise BadRequest("The URL of a request is a path.")
    host = b"[%s]" % parsed.host if b":" in parsed.host else parsed.host
    host += b":%d" % parsed.port if parsed.port else b""
    headers[:] = [(name, host if name == b"host" else value) for name, value in headers]
    query = b"" if parsed.query is None else b"?" + parsed.query
    return (parsed.path or b"/") + query


def wants_websocket(scope: HTTPScope) -> bool:
    """Return whether an upgrade request asks for WebSocket. HTTP/1.0 has no upgrades."""
    return scope["http_version"] == "1.1" and any(
        name == b"upgrade" and value.lower() == b"websocket" for name, value in scope["headers"]
    )


def without_upgrade(scope: HTTPScope, url: bytes) -> bytes:
    """Return the head of a request without its wish for an upgrade."""
    headers = list(scope["headers"])
    closes = any(name == b"connection" and b"close" in value.lower() for name, value in headers)
    return b"\r\n".join(
        (
            b"%s %s HTTP/%s" % (scope["method"].encode(), url, scope["http_version"].encode()),
            *(b"%s: %s" % header for header in headers if header[0] not in _HOPS),
            *((b"connection: close",) if closes else ()),
            b"",
            b"",
        )
    )
