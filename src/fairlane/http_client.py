"""A small HTTP/1.1 client over h11: connections for asyncio and for ordinary code.

No pool, redirects, cookies, proxies or compression: callers decide what to connect to, and when.
See docs/decisions/0006 and 0010.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import h11

CONNECT_SECONDS: Final = 5.0
"""How long connecting to one address may take."""
CHUNK: Final = 256 * 1024
HEAD_BYTES: Final = 64 * 1024

ProtocolError = h11.RemoteProtocolError
"""The reply is not valid HTTP, or ended early."""
InvalidRequest = h11.LocalProtocolError
"""The request cannot be sent: a header is not valid, for example."""


class Disconnected(OSError):
    """The server closed the connection before the first byte of its reply."""


class Request(NamedTuple):
    """A request. Its headers include Host and Content-Length."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""


class Reply(NamedTuple):
    """A reply. The names of its headers are in lower case."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    def header(self, name: str) -> str | None:
        """Return the first header of this name."""
        wanted = name.encode()
        return next((text.decode("latin-1") for each, text in self.headers if each == wanted), None)


def host_header(host: str, port: int, *, tls: bool) -> str:
    """Return the Host header for a host, which is a name or an address without brackets."""
    host = f"[{host}]" if ":" in host else host
    return host if port == (443 if tls else 80) else f"{host}:{port}"


class _Exchange:
    """The HTTP of one connection, without input and output. `keep`: how much of a body is read."""

    def __init__(self, keep: int | None) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._keep = keep
        self._reply: h11.Response | None = None
        self._body: list[bytes] = []
        self._size = self._received = 0

    def send(self, request: Request) -> bytes:
        """Return the bytes of a request."""
        self._reply, self._body, self._size, self._received = None, [], 0, 0
        method, target, headers, body = request
        head = self._http.send(h11.Request(method=method, target=target, headers=headers))
        content = self._http.send(h11.Data(data=body)) if body else b""
        end = self._http.send(h11.EndOfMessage())
        return b"".join((head or b"", content or b"", end or b""))

    def receive(self, data: bytes) -> Reply | None:
        """Return the reply once it is complete. No data: the server has closed the connection."""
        if not data and not self._received:
            raise Disconnected("The server closed the connection.")
        self._received += len(data)
        if self._keep is not None and self._received > 2 * HEAD_BYTES + self._keep:
            raise ProtocolError("the reply is too long for what it says")
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._reply = event
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
                self._size += len(event.data)
            elif isinstance(event, h11.ConnectionClosed):
                raise ProtocolError("closed")
            reply = self._reply
            complete = isinstance(event, h11.EndOfMessage) or (
                self._keep is not None and self._size >= self._keep
            )
            if complete and reply is not None:
                return Reply(reply.status_code, b"".join(self._body)[: self._keep], reply.headers)

    def restart(self) -> bool:
        """Get ready for the next request. Return False if the connection cannot take one."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


class AsyncConnection:
    """A connection for asyncio, with one request at a time."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        keep: int | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._exchange = _Exchange(keep)

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        name: str | None = None,
        keep: int | None = None,
    ) -> AsyncConnection:
        """Connect to a host. `name`: the host name in its certificate, if `host` is an address.
        `keep`: how much of a reply's body is read."""
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                host,
                port,
                ssl=context,
                server_hostname=None if context is None else name or host,
                limit=CHUNK,
            )
        return cls(reader, writer, keep)

    async def request(self, request: Request) -> Reply:
        """Send a request, and return the reply. The caller limits the time. Raises OSError,
        ProtocolError or InvalidRequest, after which the connection must be closed."""
        self._writer.write(self._exchange.send(request))
        await self._writer.drain()
        while True:
            reply = self._exchange.receive(await self._reader.read(CHUNK))
            if reply is not None:
                return reply

    def restart(self) -> bool:
        """Get ready for the next request. Return False if the connection cannot take one."""
        return self._exchange.restart()

    @property
    def alive(self) -> bool:
        """Whether the server has not closed the connection, as far as is known."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


class SyncConnection:
    """A connection for ordinary code, with one request at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._exchange = _Exchange(None)

    @classmethod
    def open(cls, host: str, port: int, context: ssl.SSLContext | None) -> SyncConnection:
        """Connect to a host."""
        connection = socket.create_connection((host, port), CONNECT_SECONDS)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connection = context.wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def request(self, request: Request, seconds: float) -> Reply:
        """Send a request, and return the reply. Raises OSError (a TimeoutError after `seconds`),
        ProtocolError or InvalidRequest, after which the connection must be closed."""
        deadline = time.monotonic() + seconds
        self._connection.settimeout(seconds)
        self._connection.sendall(self._exchange.send(request))
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            reply = self._exchange.receive(self._connection.recv(CHUNK))
            if reply is not None:
                return reply

    def restart(self) -> bool:
        """Get ready for the next request. Return False if the connection cannot take one."""
        return self._exchange.restart()

    @property
    def alive(self) -> bool:
        """Whether nothing arrived since the last reply: a server sends only that it closes."""
        poller = select.poll()
        poller.register(self._connection, select.POLLIN)
        return not poller.poll(0)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
