"""Connections for ordinary code: kept between requests, and shared by all threads."""

from __future__ import annotations

import ssl
import threading
from typing import Any, TypeVar

from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op, perform
from fairlane.engines.http.calls import CLOSED, IDLE, REPLY_SECONDS, Call, Head
from fairlane.engines.http.errors import connection_error
from fairlane.http_client import Disconnected, Reply, SyncConnection

T = TypeVar("T")


class SyncSide:
    """Idle connections of all threads."""

    def __init__(self, head: Head, context: ssl.SSLContext | None) -> None:
        self._head = head
        self._context = context
        self._guard = threading.Lock()
        self._idle: list[SyncConnection] = []
        self._closed = False

    def attempt(self, op: Op[T]) -> T:
        """Perform an operation once."""
        return perform(op.flow(), self._call)

    def close(self) -> None:
        with self._guard:
            self._closed = True
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def __del__(self) -> None:
        """Close the connections of a driver that was dropped."""
        self.close()

    def _call(self, call: Call) -> Reply:
        if self._closed:
            raise StoreUnavailable(CLOSED)
        while (connection := self._take()) is not None:
            if not connection.alive:
                connection.close()
                continue
            try:
                return self._exchange(connection, call)
            except Disconnected:
                continue  # the server closed it while it was idle: use another one
        try:
            return self._exchange(self._open(), call)
        except Disconnected as error:
            meaning: Any = connection_error(self._head.address, error)
            raise meaning from None

    def _take(self) -> SyncConnection | None:
        with self._guard:
            return self._idle.pop() if self._idle else None

    def _exchange(self, connection: SyncConnection, call: Call) -> Reply:
        try:
            reply = connection.request(self._head.request(call), REPLY_SECONDS + call.seconds)
        except BaseException as error:  # noqa: BLE001 (raised again)
            connection.close()
            if isinstance(error, Disconnected | ConnectionResetError | BrokenPipeError):
                raise Disconnected from None
            meaning: Any = connection_error(self._head.address, error)
            raise meaning from None
        with self._guard:
            keep = connection.restart() and not self._closed and len(self._idle) < IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        return reply

    def _open(self) -> SyncConnection:
        address = self._head.address
        try:
            return SyncConnection.open(address.host, address.port, self._context)
        except Exception as error:  # noqa: BLE001 (raised again)
            meaning: Any = connection_error(address, error)
            raise meaning from None
