"""One request, from the application's call to the end of the response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from fairlane.server.errors import HttpError, response_to
from fairlane.server.http.errors import STOPPING, Busy

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

logger = logging.getLogger("fairlane.server")

Message = MutableMapping[str, Any]

_UNUSUAL: Final = frozenset({b"connection", b"transfer-encoding", b"set-cookie"})
"""Headers that change how a response is sent, or that must not be cached."""


class InternalError(HttpError):
    """Something went wrong in the server."""

    code = "internal_error"
    status = 500


class Cycle(RequestResponseCycle):
    """uvicorn's cycle, but every error becomes a response in the one shape of errors, and a
    response in one piece is sent with one write."""

    _start: Message | None = None
    """The head of a response, which is sent together with the body."""

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run the application."""
        try:
            await app(self.scope, self.receive, self.send)
            if not self.response_complete and not self.disconnected:
                logger.error("The application did not complete its response")
                await self._send_error(InternalError())
        except asyncio.CancelledError:  # the grace period of a server that stops is over
            await self._send_error(Busy(STOPPING))
        except Exception as error:  # noqa: BLE001 (an application may raise anything)
            await self._send_error(error)
        finally:
            self.on_response = _nothing

    async def receive(self) -> Any:
        """Return the next part of the request."""
        arrived = self.message_event
        if (
            self.more_body
            or not arrived.is_set()
            or self.disconnected
            or self.response_complete
            or self.waiting_for_100_continue
        ):
            return await super().receive()
        # All that is left of it is there: the common case, without waiting for the event.
        arrived.clear()
        self.flow.resume_reading()
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start" and not self.response_started:
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            if self._send_whole(start, message):
                return
            await super().send(start)  # type: ignore[arg-type]
        await super().send(message)

    def _send_whole(self, start: Message, message: Message) -> bool:
        """Send a complete response with one write. Return False if uvicorn has to send it."""
        body = message.get("body", b"")
        length, lines = _head(tuple(start.get("headers", ())))
        if (
            length != len(body)
            or message.get("more_body", False)
            or self.scope["method"] == "HEAD"
            or not self.keep_alive
            or self.disconnected
            or self.flow.write_paused
        ):
            return False
        ours = starmap(_line, self.default_headers)
        self.response_started = self.response_complete = True
        self.transport.write(b"".join((STATUS_LINE[start["status"]], *ours, lines, body)))
        self.message_event.set()
        self.on_response()
        return True

    def abandon(self) -> None:
        """Tell the application that the client has left."""
        if not self.response_complete:
            self.disconnected = True
        self.message_event.set()

    async def _send_error(self, error: Exception) -> None:
        response = response_to(error)
        if self.response_started:
            self.transport.close()  # the client must not take a part for the whole
        else:
            await response.send(self.send, bodiless=self.scope["method"] == "HEAD")


@lru_cache
def _head(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[int | None, bytes]:
    """Return the Content-Length of a response, None if it has to be sent in another way, and its
    headers as they are sent. Cached, because most responses have the headers of an earlier one."""
    names = dict(headers)
    length = names.get(b"content-length", b"")
    if not length.isdigit() or not _UNUSUAL.isdisjoint(names):
        return None, b""
    return int(length), b"".join((*starmap(_line, headers), b"\r\n"))


@lru_cache
def _line(name: bytes, value: bytes) -> bytes:
    """Return a header line. Cached, because most are the same in all responses."""
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError("This is not a header.")
    return b"%s: %s\r\n" % (name.lower(), value)


def _nothing() -> None:
    return None
