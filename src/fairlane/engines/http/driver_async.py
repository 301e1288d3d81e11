"""Connections for asyncio: kept between requests, each with one request on its way."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op, perform_async
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

    def __init__(
        self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.wire = wire
        self.reader = reader
        self.writer = writer

    async def exchange(self, request: Request) -> Reply:
        async with asyncio.timeout(REPLY_SECONDS + request.seconds):
            self.writer.write(self.wire.sent(request))
            await self.writer.drain()
            while True:
                reply = self.wire.received(await self.reader.read(CHUNK))
                if reply is not None:
                    return reply

    @property
    def alive(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    def hang_up(self) -> None:
        self.writer.transport.abort()


class AsyncSide:
    """Connections of each loop."""

    def __init__(self, head: Head, context: ssl.SSLContext | None) -> None:
        self._head = head
        self._context = context
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Line]] = WeakKeyDictionary()
        self._closed = False

    async def attempt(self, op: Op[T]) -> T:
        """Perform an operation, once."""
        return await perform_async(op.flow(), self._call)

    async def aclose(self) -> None:
        """Let go of the connections of this loop; those of others end with what they do."""
        self._closed = True
        for line in self._idle.pop(asyncio.get_running_loop(), []):
            line.hang_up()

    def close(self) -> None:
        self._closed = True
        for loop, lines in self._idle.items():
            for line in lines:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(line.hang_up)

    def __del__(self) -> None:
        """Whoever just drops a driver hangs up as well, each connection in its own loop."""
        self.close()

    async def _call(self, request: Request) -> Reply:
        if self._closed:
            raise StoreUnavailable("This application has let go of its server.")
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        while idle:
            line = idle.pop()
            if not line.alive:
                line.hang_up()
                continue
            try:
                return await self._exchange(line, request)
            except HungUp:
                continue  # while it was idle: what was asked is asked again on another one
        try:
            line = await self._open()
            return await self._exchange(line, request)
        except HungUp as error:
            raise outage(self._head.address, error) from None

    async def _exchange(self, line: _Line, request: Request) -> Reply:
        """Whoever is interrupted hangs up: the answer that is still to come must not be taken for
        that of the next request."""
        try:
            reply = await line.exchange(request)
        except BaseException as error:  # noqa: BLE001 (raised again)
            line.hang_up()
            if isinstance(error, HungUp | ConnectionResetError | BrokenPipeError):
                raise HungUp from None
            meaning: Any = outage(self._head.address, error)
            raise meaning from None
        idle = self._idle.get(asyncio.get_running_loop())
        if line.wire.turned() and not self._closed and idle is not None and len(idle) < IDLE:
            idle.append(line)
        else:
            line.hang_up()
        return reply

    async def _open(self) -> _Line:
        address = self._head.address
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    address.host,
                    address.port,
                    ssl=self._context,
                    server_hostname=address.host if self._context is not None else None,
                    limit=CHUNK,
                )
        except Exception as error:  # noqa: BLE001 (raised again)
            meaning: Any = outage(address, error)
            raise meaning from None
        return _Line(Wire(self._head), reader, writer)
