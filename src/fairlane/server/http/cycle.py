"""One request while an application works on it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairlane.server.errors import Refused, answer_to
from fairlane.server.http.faults import STOPPING, Busy

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

logger = logging.getLogger("fairlane.server")


class Unanswered(Refused):
    """Something went wrong in the server."""

    code = "internal_error"
    status = 500


class Cycle(RequestResponseCycle):
    """As uvicorn has it, but whatever goes wrong is answered in the one shape of errors."""

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
            await answer.send(self.send, bodiless=self.scope["method"] == "HEAD")  # type: ignore[arg-type]


def _nothing() -> None:
    return None
