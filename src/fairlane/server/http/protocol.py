"""Reading requests: uvicorn's httptools protocol, with limits on size and number.

A request that arrives in one piece, as nearly all do, costs no more than with uvicorn: sizes are
added up only if a request is incomplete or large.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from fairlane.server.errors import HttpError
from fairlane.server.http import request_head
from fairlane.server.http.connection import BETWEEN, BODY, HEADERS, OVER, Connection
from fairlane.server.http.cycle import Cycle
from fairlane.server.http.errors import BadRequest, Busy, HeadersTooLarge, RefusingApp, UrlTooLong
from fairlane.server.http.watch import NEVER

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application


class Protocol(Connection):
    """One connection, and the requests on it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._upgrades = False
        self._piece = 0
        """Size of the piece that is being parsed."""
        self._barren = 0
        """Bytes of pieces without progress: without the start of a request, the end of headers or a
        part of a body. Progress sets it to -piece, so that it is 0 at the end of the piece."""
        self._unwanted = 0
        """Bytes of a body that came after the response to its request."""

    def data_received(self, data: bytes) -> None:
        while self._phase is not OVER:
            self._piece = len(data)
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stop:
                if self._becomes_websocket():
                    return
                # The parser takes the rest for the other protocol: a body would be lost.
                data = self._start_again() + data[stop.args[0] :]
                continue
            except httptools.HttpParserError as error:
                self._refuse(self._fault or BadRequest(f"This is not HTTP: {error}."))
            else:
                if self._phase is not BETWEEN:
                    self._limit_incomplete()
            return

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = HEADERS
        self._barren = -self._piece
        self.receipt_due = NEVER

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        headers, url, limits, scope = self.headers, self.url, self._limits, self.scope
        piece = self._piece
        if self._barren != -piece or piece > limits.url_bytes or len(headers) > limits.headers:
            self._check_sizes()
        version = self.parser.get_http_version()
        method = self.parser.get_method().decode("ascii")
        scope["method"] = method
        if version != "1.1":
            scope["http_version"] = version
        try:
            if url[:1] != b"/" or b"#" in url:
                url = request_head.origin_form(method, url, headers)
            expects, refusal = request_head.check_head(headers, version, limits.body_bytes)
        except HttpError as fault:
            self._stop(fault)
        self._upgrades = self.parser.should_upgrade()
        if self._upgrades:
            if method == "CONNECT":  # always upgrades: it could not be read again without that
                self._stop(BadRequest("CONNECT is for proxies, and this server is not one."))
            self.url = url
            return
        raw_path, _, scope["query_string"] = url.partition(b"?")
        path = raw_path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = raw_path
        app: ASGI3Application = self.app
        if refusal is not None:
            app = self._refusing(refusal)
        elif len(self.tasks) >= limits.requests:
            app = self._refusing(Busy())
        if len(self.pipeline) >= limits.pipelined:
            self._stop(BadRequest("Too many requests were pipelined: wait for responses."))
        self.headers = []  # for the trailers of a chunked body, which are ignored
        self._phase = BODY
        self._barren, self._unwanted = -piece, 0
        self.receipt_due = NEVER
        earlier = self.cycle
        self.cycle = Cycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,  # noqa: FBT003 (access_log)
            self.server_state.default_headers,
            asyncio.Event(),
            expects,
            version == "1.1" and self.parser.should_keep_alive(),
            self.on_response_complete,
        )
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        assert cycle is not None
        self._barren = -self._piece
        if cycle.response_complete:
            self._unwanted += len(body)
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        cycle = self.cycle
        if self._upgrades or cycle is None:
            return
        self._phase = BETWEEN
        if cycle.response_complete:
            self.receipt_due = self.loop.time() + self._limits.idle_seconds
        else:
            cycle.more_body = False
            cycle.message_event.set()

    def _limit_incomplete(self) -> None:
        """Limit the time and size of an incomplete request."""
        limits = self._limits
        headers = self._phase is HEADERS
        if self.receipt_due == NEVER:
            seconds = limits.header_seconds if headers else limits.body_seconds
            self.receipt_due = self.loop.time() + seconds
        self._barren += self._piece
        if self._barren > limits.header_bytes:
            long = headers and len(self.url) > limits.url_bytes
            self._refuse(UrlTooLong() if long else HeadersTooLarge())
        elif self._unwanted > limits.body_bytes:
            self._linger()

    def _check_sizes(self) -> None:
        if len(self.url) > self._limits.url_bytes:
            self._stop(UrlTooLong())
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.headers) > self._limits.headers or size > self._limits.header_bytes:
            self._stop(HeadersTooLarge())

    def _becomes_websocket(self) -> bool:
        """Hand the connection over if the request asks for WebSocket, or refuse it. Any other wish
        to change the protocol is ignored."""
        self._phase = BETWEEN
        if not request_head.wants_websocket(self.scope) or not self.ws_protocol_class:
            return False
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse(BadRequest("An upgrade must wait for the responses to earlier requests."))
        else:
            self._watch.connections.discard(self)
            self.handle_websocket_upgrade()
        return True

    def _start_again(self) -> bytes:
        """Return the head of a request to read again, without its wish for an upgrade."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return request_head.without_upgrade(self.scope, self.url)

    def _refusing(self, fault: HttpError) -> ASGI3Application:
        self._watch.log_refusal(fault, self.client)
        return RefusingApp(fault)  # type: ignore[return-value]

    def _stop(self, fault: HttpError) -> NoReturn:
        """Stop the parser with this error."""
        self._fault = fault
        raise fault
