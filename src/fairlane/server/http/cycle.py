"""One request while an application works on it."""

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

from fairlane.server.errors import Refused, answer_to
from fairlane.server.http.faults import STOPPING, Busy

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

logger = logging.getLogger("fairlane.server")

Message = MutableMapping[str, Any]

_UNUSUAL: Final = frozenset({b"connection", b"transfer-encoding", b"set-cookie"})
"""Headers that change how an answer is sent, or that are not to be remembered."""


class Unanswered(Refused):
    """Something went wrong in the server."""

    code = "internal_error"
    status = 500


class Cycle(RequestResponseCycle):
    """As uvicorn has it, but whatever goes wrong is answered in the one shape of errors, and an
    answer of one piece is sent in one piece."""

    _start: Message | None = None
    """The head of an answer, which waits for the body to go with it."""

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Let the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
            if not self.response_complete and not self.disconnected:
                logger.error("The application has left a request without a whole answer")
                await self._answer(Unanswered())
        except asyncio.CancelledError:  # the grace of a server that stops is over
            await self._answer(Busy(STOPPING))
        except Exception as error:  # noqa: BLE001 (an application may raise anything)
            await self._answer(error)
        finally:
            self.on_response = _nothing

    async def send(self, message: Any) -> None:
        """Take a part of the answer from the application."""
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
        """Send an answer that is there as a whole; False if it is for uvicorn to send."""
        body, headers = message.get("body", b""), start.get("headers", ())
        names = dict(headers)
        if (
            message.get("more_body", False)
            or names.get(b"content-length") != b"%d" % len(body)
            or not _UNUSUAL.isdisjoint(names)
            or self.scope["method"] == "HEAD"
            or not self.keep_alive
            or self.disconnected
            or self.flow.write_paused
        ):
            return False
        lines = (*starmap(_line, self.default_headers), *starmap(_line, headers))
        self.response_started = self.response_complete = True
        self.transport.write(b"".join((STATUS_LINE[start["status"]], *lines, b"\r\n", body)))
        self.message_event.set()
        self.on_response()
        return True

    def abandon(self) -> None:
        """Nobody will read the answer: let the application know."""
        if not self.response_complete:
            self.disconnected = True
        self.message_event.set()

    async def _answer(self, error: Exception) -> None:
        answer = answer_to(error)
        if self.response_started:
            self.transport.close()  # the client must not take what it has for the whole
        else:
            await answer.send(self.send, bodiless=self.scope["method"] == "HEAD")


@lru_cache
def _line(name: bytes, value: bytes) -> bytes:
    """A header as it is sent; most are the same in all answers."""
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError("This is not a header.")
    return b"%s: %s\r\n" % (name.lower(), value)


def _nothing() -> None:
    return None
