"""HTTP/1.1 by h11, without input or output: what both sides of the driver send and read."""

from __future__ import annotations

import ssl
from typing import Final

import h11

from fairlane.core.errors import StoreError, StoreUnavailable, StoreUnusable
from fairlane.engines.http.address import Address
from fairlane.engines.http.calls import Request
from fairlane.engines.http.errors import Reply

CONNECT_SECONDS: Final = 5.0
REPLY_SECONDS: Final = 30.0
"""How long an answer may take that the server does not keep back on purpose."""
CHUNK: Final = 256 * 1024
IDLE: Final = 16
"""Connections that are kept for later."""

_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"}


class HungUp(Exception):
    """The server closed a connection before a single byte of its answer: it had been idle too long,
    or the server has begun anew."""


class Head:
    """What every request to a server says."""

    def __init__(self, address: Address, token: str | None) -> None:
        self.address = address
        self._headers = [
            ("host", address.authority),
            ("user-agent", "fairlane"),
            ("accept", "application/json"),
        ]
        if token is not None:
            self._headers.append(("authorization", f"Bearer {token}"))

    def request(self, request: Request) -> h11.Request:
        headers = self._headers
        if request.method != "GET":
            body = request.body or b""
            length = [("content-length", str(len(body)))]
            headers = [*headers, *length, ("content-type", "application/json")]
        target = self.address.prefix + request.path
        return h11.Request(method=request.method, target=target, headers=headers)


class Wire:
    """One connection: requests on it follow each other."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._http = h11.Connection(h11.CLIENT)
        self._begun = False
        self._status = 0
        self._retry_after: str | None = None
        self._body: list[bytes] = []

    def sent(self, request: Request) -> bytes:
        """The bytes of a request."""
        self._begun, self._status, self._retry_after, self._body = False, 0, None, []
        parts = [self._http.send(self._head.request(request))]
        if request.body:
            parts.append(self._http.send(h11.Data(data=request.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        return b"".join(part for part in parts if part)

    def received(self, data: bytes) -> Reply | None:
        """The answer once it is complete. No data: the server has closed the connection."""
        if not data and not self._begun:
            raise HungUp
        self._begun = True
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._status = event.status_code
                found = [text for name, text in event.headers if name == b"retry-after"]
                self._retry_after = found[0].decode("latin-1") if found else None
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return Reply(self._status, b"".join(self._body), self._retry_after)
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("closed")

    def turned(self) -> bool:
        """Ready for the next request, if the server leaves the connection open."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


def outage(address: Address, error: BaseException) -> BaseException:
    """What a connection that could not be made, or was lost, means to a user."""
    who = address.shown
    match error:
        case StoreError():
            return error
        case ssl.SSLCertVerificationError():
            return StoreUnusable(
                f"{who} shows a certificate that cannot be trusted: "
                f"{error.verify_message.rstrip('.')}. Check ca_file and the host in the URL."
            )
        case ssl.SSLError(reason=reason) if reason in _NO_TLS:
            return StoreUnusable(f"{who} does not speak TLS: use http://.")
        case TimeoutError():
            return StoreUnavailable(f"{who} does not answer.")
        case HungUp() | h11.RemoteProtocolError() | ConnectionResetError() | BrokenPipeError():
            hint = "" if address.tls else " If it expects TLS, use https://."
            return StoreUnavailable(f"{who} hung up.{hint}")
        case OSError():
            return StoreUnavailable(f"{who} cannot be reached at the moment.")
        case _:
            return error
