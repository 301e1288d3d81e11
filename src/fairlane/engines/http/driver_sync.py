"""Connections for ordinary code: kept between requests, whichever thread makes them."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from typing import Any, TypeVar

from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op, perform
from fairlane.engines.http.calls import Request
from fairlane.engines.http.driver_wire import (
    CHUNK,
    CONNECT_SECONDS,
    IDLE,
    REPLY_SECONDS,
    Head,
    HungUp,
    Wire,
    outage,
)
from fairlane.engines.http.errors import Reply

T = TypeVar("T")


class _Line:
    """A connection."""

    def __init__(self, wire: Wire, connection: socket.socket) -> None:
        self.wire = wire
        self.connection = connection

    def exchange(self, request: Request) -> Reply:
        deadline = time.monotonic() + REPLY_SECONDS + request.seconds
        self.connection.settimeout(REPLY_SECONDS)
        self.connection.sendall(self.wire.sent(request))
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.connection.settimeout(left)
            reply = self.wire.received(self.connection.recv(CHUNK))
            if reply is not None:
                return reply

    @property
    def alive(self) -> bool:
        """Whether nothing was said since: what a server says unasked is that it hangs up."""
        poller = select.poll()
        poller.register(self.connection, select.POLLIN)
        return not poller.poll(0)

    def hang_up(self) -> None:
        self.connection.close()


class SyncSide:
    """Connections of all threads."""

    def __init__(self, head: Head, context: ssl.SSLContext | None) -> None:
        self._head = head
        self._context = context
        self._guard = threading.Lock()
        self._idle: list[_Line] = []
        self._closed = False

    def attempt(self, op: Op[T]) -> T:
        """Perform an operation, once."""
        return perform(op.flow(), self._call)

    def close(self) -> None:
        with self._guard:
            self._closed = True
            lines, self._idle = self._idle, []
        for line in lines:
            line.hang_up()

    def __del__(self) -> None:
        """Whoever just drops a driver hangs up as well."""
        self.close()

    def _call(self, request: Request) -> Reply:
        if self._closed:
            raise StoreUnavailable("This application has let go of its server.")
        while (line := self._taken()) is not None:
            if not line.alive:
                line.hang_up()
                continue
            try:
                return self._exchange(line, request)
            except HungUp:
                continue  # while it was idle: what was asked is asked again on another one
        try:
            return self._exchange(self._open(), request)
        except HungUp as error:
            meaning: Any = outage(self._head.address, error)
            raise meaning from None

    def _taken(self) -> _Line | None:
        with self._guard:
            return self._idle.pop() if self._idle else None

    def _exchange(self, line: _Line, request: Request) -> Reply:
        try:
            reply = line.exchange(request)
        except BaseException as error:  # noqa: BLE001 (raised again)
            line.hang_up()
            if isinstance(error, HungUp | ConnectionResetError | BrokenPipeError):
                raise HungUp from None
            meaning: Any = outage(self._head.address, error)
            raise meaning from None
        with self._guard:
            keep = line.wire.turned() and not self._closed and len(self._idle) < IDLE
            if keep:
                self._idle.append(line)
        if not keep:
            line.hang_up()
        return reply

    def _open(self) -> _Line:
        address = self._head.address
        try:
            connection = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                connection = _secured(self._context, connection, address.host)
        except Exception as error:  # noqa: BLE001 (raised again)
            meaning: Any = outage(address, error)
            raise meaning from None
        return _Line(Wire(self._head), connection)


def _secured(context: ssl.SSLContext, connection: socket.socket, host: str) -> socket.socket:
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise
