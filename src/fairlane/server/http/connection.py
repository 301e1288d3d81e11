"""One connection from open to close: uvicorn's, with limits.

What uvicorn lacks: deadlines, limits that respond in the one shape of errors, error responses in
the right order when requests are pipelined, and a close that lets the client read them. Deadlines
are numbers that a sweep checks (see watch.py), which costs less than uvicorn's timers.
"""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlane.server.addresses import counted_as
from fairlane.server.errors import HttpError
from fairlane.server.http.cycle import Cycle
from fairlane.server.http.errors import BadRequest, Busy, TooSlow, closing_response
from fairlane.server.http.watch import NEVER, ConnectionWatch

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.config import Config
    from uvicorn.server import ServerState


class Phase(IntEnum):
    """How much of the current request has arrived."""

    BETWEEN = 0
    HEADERS = 1
    BODY = 2
    OVER = 3
    """No more requests: further data is discarded."""


BETWEEN: Final = Phase.BETWEEN
HEADERS: Final = Phase.HEADERS
BODY: Final = Phase.BODY
OVER: Final = Phase.OVER


class Connection(HttpToolsProtocol):
    """One connection. protocol.py reads the requests."""

    cycle: Cycle | None  # type: ignore[assignment]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # noqa: ARG002 (uvicorn's, whose lifespan is off)
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        watch: ConnectionWatch,
    ) -> None:
        super().__init__(config, server_state, watch.state, _loop)
        self.access_log = False
        self.receipt_due = self.reading_due = NEVER
        self.address: str | None = None
        self._watch = watch
        self._limits = watch.limits
        self._phase = BETWEEN
        self._fault: HttpError | None = None
        self._working: Cycle | None = None
        self._lingers = False
        self._counts = False
        """It is one of those whose number is limited."""
        self._refused = False
        """It is one of the few others, which are told so."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = counted_as(self.client[0]) if self.client else None
        self._counts = self._watch.enter(self.address)
        self._refused = not self._counts and self._watch.enter_refused()
        self._watch.connections.add(self)
        self.receipt_due = self.loop.time() + self._limits.header_seconds
        if self._refused:
            self._refuse(Busy())
        elif not self._counts:
            self._phase = OVER
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._refused:
            self._watch.leave_refused()
        self._leave()
        super().connection_lost(exc)
        if self._working is not None:  # not uvicorn's `cycle` when requests are pipelined
            self._working.abandon()

    def _leave(self) -> None:
        """Count no more. The transport may take a moment to close."""
        self._watch.connections.discard(self)
        if self._counts:
            self._counts = False
            self._watch.leave(self.address)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.reading_due = self.loop.time() + self._limits.write_seconds

    def resume_writing(self) -> None:
        super().resume_writing()
        self.reading_due = NEVER

    def eof_received(self) -> None:
        if self._phase in {HEADERS, BODY}:
            self._refuse(BadRequest("The request ended before it was complete."))

    def shutdown(self) -> None:
        if self._lingers:
            self.transport.close()
        else:
            super().shutdown()

    @property
    def idle(self) -> bool:
        """No request has begun, and no response is due or unread."""
        done = self.cycle is None or self.cycle.response_complete
        return self._phase is BETWEEN and done and not self.transport.get_write_buffer_size()

    def close_idle(self) -> None:
        """Close, because others need the room."""
        self._phase = OVER
        self._leave()
        self.transport.close()

    def expire(self, now: float) -> None:
        """Handle a deadline that has passed."""
        arriving = self._phase in {HEADERS, BODY} and self.reading_due > now
        if arriving and self.flow.read_paused:
            self.receipt_due = (
                now + self._limits.body_seconds
            )  # the application is slow, not the client
        elif arriving:
            self._refuse(TooSlow())
        elif self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _start_asgi_task(self, cycle: Cycle, app: ASGI3Application) -> None:  # type: ignore[override]
        self._working = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)  # type: ignore[arg-type]
        elif self._phase is OVER:
            self._send_closing_response()
        elif self._phase is BETWEEN:
            self.receipt_due = self.loop.time() + self._limits.idle_seconds

    def _refuse(self, fault: HttpError) -> None:
        """Send this error after the pending responses, and close."""
        self._watch.log_refusal(fault, self.client)
        self._fault = fault
        broken = self.cycle if self._phase is BODY else None
        self._phase = OVER
        self.receipt_due = NEVER
        if broken is not None and not broken.response_complete:
            if self.pipeline:
                self.pipeline.popleft()
            else:
                broken.abandon()
                if broken.response_started:
                    self.transport.close()
                else:
                    self._send_closing_response()
        elif broken is not None:  # it has its response already
            self._linger()
        elif self.cycle is None or self.cycle.response_complete:
            self._send_closing_response()

    def _send_closing_response(self) -> None:
        if self._fault is not None:
            self.transport.write(closing_response(self._fault, self.server_state.default_headers))
        self._linger()

    def _linger(self) -> None:
        """Close so that the client can read the response: closing with unread data would send a
        reset, and the response would be lost."""
        self._phase = OVER
        self._lingers = True
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.receipt_due = self.loop.time() + self._limits.linger_seconds
        else:
            self.transport.close()
