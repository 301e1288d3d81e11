"""Connections for asyncio: kept between requests, each with one request at a time."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op, perform_async
from fairlane.engines.http.calls import CLOSED, IDLE, REPLY_SECONDS, Call, Head
from fairlane.engines.http.errors import connection_error
from fairlane.http_client import AsyncConnection, Disconnected, Reply

T = TypeVar("T")


class AsyncSide:
    """Idle connections of each event loop."""

    def __init__(self, head: Head, context: ssl.SSLContext | None) -> None:
        self._head = head
        self._context = context
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[AsyncConnection]]
        self._idle = WeakKeyDictionary()
        self._closed = False

    async def attempt(self, op: Op[T]) -> T:
        """Perform an operation once."""
        return await perform_async(op.flow(), self._call)

    async def aclose(self) -> None:
        """Close the idle connections of this loop. Those of other loops close with their loop."""
        self._closed = True
        for connection in self._idle.pop(asyncio.get_running_loop(), []):
            connection.close()

    def close(self) -> None:
        self._closed = True
        for loop, connections in self._idle.items():
            for connection in connections:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(connection.close)

    def __del__(self) -> None:
        """Close the connections of a driver that was dropped, each in its own loop."""
        self.close()

    async def _call(self, call: Call) -> Reply:
        if self._closed:
            raise StoreUnavailable(CLOSED)
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        while idle:
            connection = idle.pop()
            if not connection.alive:
                connection.close()
                continue
            try:
                return await self._exchange(connection, call)
            except Disconnected:
                continue  # the server closed it while it was idle: use another one
        try:
            return await self._exchange(await self._open(), call)
        except Disconnected as error:
            meaning: Any = connection_error(self._head.address, error)
            raise meaning from None

    async def _exchange(self, connection: AsyncConnection, call: Call) -> Reply:
        """Make a call on a connection. If that is interrupted, close the connection: its reply
        must not be taken for that of the next request."""
        try:
            async with asyncio.timeout(REPLY_SECONDS + call.seconds):
                reply = await connection.request(self._head.request(call))
        except BaseException as error:  # noqa: BLE001 (raised again)
            connection.close()
            if isinstance(error, Disconnected | ConnectionResetError | BrokenPipeError):
                raise Disconnected from None
            meaning: Any = connection_error(self._head.address, error)
            raise meaning from None
        idle = self._idle.get(asyncio.get_running_loop())
        if connection.restart() and not self._closed and idle is not None and len(idle) < IDLE:
            idle.append(connection)
        else:
            connection.close()
        return reply

    async def _open(self) -> AsyncConnection:
        address = self._head.address
        try:
            return await AsyncConnection.open(address.host, address.port, self._context)
        except Exception as error:  # noqa: BLE001 (raised again)
            meaning: Any = connection_error(address, error)
            raise meaning from None
