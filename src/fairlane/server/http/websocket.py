"""WebSocket connections: uvicorn's, with limits for clients that send and do not read.

Problems of uvicorn: it answers pings of a client that does not read, keeps any number of empty
fragments, cannot close a connection before the client has read, closes in a way that waits for
the client for ever or loses the reason in a reset, logs a traceback for a text that is not UTF-8,
and refuses handshakes in plain text, or without a word.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from fairlane.server.addresses import counted_as
from fairlane.server.errors import error_response
from fairlane.server.http.errors import BadRequest, closing_response
from fairlane.server.http.watch import ConnectionWatch

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
    from websockets.frames import Frame
    from websockets.http11 import Response

FRAGMENTS: Final = 100
"""How many fragments a message may have."""
TOO_BIG: Final = 1009
NOT_UTF8: Final = 1007

_CODES: Final = {
    405: "method_not_allowed",
    414: "url_too_long",
    426: "upgrade_required",
    431: "headers_too_large",
    500: "internal_error",
}


class _Handshake(ServerProtocol):
    """The library's protocol, which refuses handshakes in the one shape of errors."""

    def reject(self, status: int, text: str) -> Response:
        message = text.partition("\n")[0].encode(errors="replace").decode().removesuffix(".") + "."
        answer = error_response(status, _CODES.get(status, BadRequest.code), message)
        response = super().reject(status, msgspec.json.encode(answer.body).decode())
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = answer.kind.decode()
        for name, value in answer.guards:
            response.headers[name.decode()] = value.decode()
        return response


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket connection."""

    def __init__(self, *args: Any, watch: ConnectionWatch, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _Handshake(max_size=self.config.ws_max_size, logger=self.logger)
        self.close_timeout = watch.limits.linger_seconds
        self._watch = watch
        self._limits = watch.limits
        self._full = False
        """The client does not read."""
        self._over = False
        """Further data is discarded."""
        self._deadline: asyncio.TimerHandle | None = None

    # -- a client that does not read ---------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = True
        self._stay_paused()
        self._end_in(self._limits.write_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._full = False
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
        if self._deadline is not None and not self.close_sent:
            self._deadline.cancel()
            self._deadline = None

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        self._stay_paused()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        if message["type"] == "websocket.close":
            self.writable.set()  # the close frame is small
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True  # or refused: uvicorn has nothing to report
            self._stay_paused()
            self._end_in(self._limits.linger_seconds)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._end_in(self._limits.linger_seconds)

    def shutdown(self) -> None:
        super().shutdown()
        self._end_in(self._limits.linger_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        # It was counted when it was a connection for requests.
        self._watch.leave(counted_as(self.client[0]) if self.client else None)
        super().connection_lost(exc)

    def _stay_paused(self) -> None:
        if self._full and not self.transport.is_closing():
            self.transport.pause_reading()

    def _end_in(self, seconds: float) -> None:
        """Abort the connection after this time, whether the client has read everything or not."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    # -- a client that sends what it must not ------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # The library refused the handshake: send its response, or ours if it has none.
            response = b"".join(self.conn.data_to_send())
            fault = BadRequest("A WebSocket handshake is a GET request without a body.")
            self.transport.write(response or closing_response(fault, self.default_headers))
            self.transport.close()

    def send_receive_event_to_app(self) -> None:
        self.frames = [b"".join(self.frames)]
        if self.curr_msg_data_type == "text":
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:
                self._fail(NOT_UTF8, "a text is not UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < FRAGMENTS:
            super().handle_cont(event)
            return
        self._fail(TOO_BIG, "too many fragments")

    def _fail(self, code: int, reason: str) -> None:
        self.frames = []
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        closing = self.conn.close_sent
        assert closing is not None
        self.queue.put_nowait(
            {"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason}
        )
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = self._over = True
        # Closing with unread data would send a reset, and the reason would be lost.
        self.close_timer = self.loop.call_later(self._limits.linger_seconds, self.transport.abort)
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
