"""The handler `webhook`: send a request to another server.

Errors name no host and no path: they are part of the payload, which may be encrypted, while errors
are stored and logged as they are.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from fairlane import __version__
from fairlane.handlers.addresses import REFUSED, resolve
from fairlane.handlers.http import Target, request
from fairlane.handlers.settings import WebhookSettings, tls_context
from fairlane.http_client import InvalidRequest, ProtocolError, Reply
from fairlane.runtime.context import Context
from fairlane.runtime.outcomes import Fail, Retry

SHORTEST_WAIT: Final = 1.0
"""The least seconds before another attempt, whatever a server asks for."""
LONGEST_WAIT: Final = 86_400.0
"""The most seconds that a server can make us wait."""

_RESERVED: Final = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
"""Headers of the connection, which a payload cannot set."""

_RETRIABLE: Final = {408, 425, 429}
"""Client errors that another attempt may not have."""


class Undelivered(Exception):
    """The server could not be reached, or could not handle the request now."""


def webhook_handler(settings: WebhookSettings) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return the handler for these settings."""
    context = tls_context(settings.ca_file)

    async def webhook(
        ctx: Context,
        url: str,
        method: Literal["POST", "GET"] = "POST",
        body: Any = None,
        headers: dict[str, str] | None = None,
        timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None,  # noqa: ASYNC109 (the payload's)
    ) -> dict[str, Any]:
        """Send `body` as JSON, and return the status and the beginning of the response.

        Redirects are not followed. Failures that may pass are retried; a refusal by the server is
        not.
        """
        target = parse_url(url, allow_http=settings.allow_http)
        content = b"" if method == "GET" else msgspec.json.encode(body)
        limit = settings.timeout if timeout is None else min(timeout, settings.timeout)
        try:
            async with asyncio.timeout(limit):
                addresses = await resolve(target.host, target.port, settings.networks)
                answer = await request(
                    target,
                    addresses,
                    method,
                    _headers(headers or {}, content, ctx.task_id),
                    content,
                    settings.keep_bytes,
                    context,
                )
        except InvalidRequest:
            raise Fail(
                "The request cannot be sent: a header is not valid in HTTP.", code=REFUSED
            ) from None
        except TimeoutError:
            raise Undelivered(f"The server did not answer within {limit:g} s.") from None
        except (OSError, ProtocolError) as error:
            raise Undelivered(f"The server could not be reached: {_reason(error)}.") from None
        return _result(answer)

    return webhook


def parse_url(url: str, *, allow_http: bool) -> Target:
    """Return where a URL leads. Raises Fail if it is invalid or not allowed."""
    # First, because parsing a URL silently drops some of these.
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise _refused("The URL has characters that must be percent-encoded.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("This is not a URL.") from None
    if parts.scheme not in {"http", "https"}:
        raise _refused("A webhook's URL begins with https://.")
    if parts.scheme == "http" and not allow_http:
        raise _refused(
            "A webhook's URL begins with https://; an operator can allow http:// with "
            "FAIRLANE_WEBHOOK_ALLOW_HTTP=1."
        )
    if parts.username is not None or parts.password is not None:
        raise _refused("A webhook's URL has no user name: send an Authorization header instead.")
    if not parts.hostname or port == 0:
        raise _refused("The URL has no proper host and port.")
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.hostname, port or (443 if tls else 80), path, tls)


def _headers(given: Mapping[str, str], content: bytes, task_id: str) -> dict[str, str]:
    for name in given:
        if name.lower() in _RESERVED:
            raise _refused(f"The header {name} cannot be chosen.")
    headers = {
        "User-Agent": f"fairlane/{__version__}",
        "Accept": "*/*",
        # The same for every attempt, so that the server can recognise a repetition.
        "Idempotency-Key": task_id,
    }
    if content:
        headers["Content-Type"] = "application/json"
    chosen = {name.lower() for name in given}
    headers = {name: text for name, text in headers.items() if name.lower() not in chosen}
    return headers | {
        **given,
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Length": str(len(content)),
    }


def _reason(error: Exception) -> str:
    """Return what went wrong, without addresses and names: those are the payload's."""
    match error:
        case ssl.SSLCertVerificationError():
            return "its certificate cannot be trusted, or is for another name"
        case ssl.SSLError():
            return f"TLS failed ({error.reason})"
        case socket.gaierror():
            return "its name cannot be resolved"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case ProtocolError():
            return "its answer is not valid HTTP, or ended early"
    return type(error).__name__


def _result(answer: Reply) -> dict[str, Any]:
    status = answer.status
    if 200 <= status < 300:
        return {"status": status, "body": answer.body.decode("utf-8", "replace")}
    summary = f"The server answered {status}"
    if status in {429, 503}:
        after = retry_after(answer.header("retry-after"))
        if after is not None:
            raise Retry(f"{summary} and asked to wait.", after=max(after, SHORTEST_WAIT))
    if status >= 500 or status in _RETRIABLE:
        raise Undelivered(f"{summary}.")
    if 300 <= status < 400:
        raise Fail(f"{summary}: redirects are not followed.", code=f"HTTP_{status}")
    raise Fail(f"{summary}.", code=f"HTTP_{status}")


def retry_after(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header, at most LONGEST_WAIT; None if it is not valid."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text[:20]), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), LONGEST_WAIT)


def _refused(why: str) -> Fail:
    return Fail(why, code=REFUSED)
