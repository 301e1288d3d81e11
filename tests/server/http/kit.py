"""A small application behind the real protocol, and clients that may send any bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fairlane.server.errors import BodyTooLarge, response_to
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.http.listening import bind
from fairlane.server.http.serving import serve
from fairlane.server.requests import ClientGone, Receive, Scope, read_body
from fairlane.server.responses import Response, Send

SECONDS = 20
"""Nothing here takes so long unless it hangs."""
MOST = 1_000
"""Bytes in a body of POST /echo."""


class Application:
    """An ASGI application with an address for everything a transport can get wrong."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered = asyncio.Event()
        self.left = asyncio.Event()
        self.release = asyncio.Event()
        self._handlers = {
            "/echo": self._echo,
            "/slow": self._slow,
            "/unread": self._unread,
            "/broken": self._broken,
            "/half": self._half,
            "/silent": self._silent,
            "/endless": self._endless,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        if scope["type"] == "websocket":
            await self._repeat(receive, send)
            return
        self.calls += 1
        self.entered.set()
        handler = self._handlers.get(scope["path"])
        if handler is not None:
            await handler(receive, send)
            return
        host = dict(scope["headers"]).get(b"host", b"-")
        told = f"{scope['path']} {scope['query_string'].decode()} {host.decode()}"
        await Response(told.encode()).send(send, bodiless=scope["method"] == "HEAD")

    async def _repeat(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    async def _echo(self, receive: Receive, send: Send) -> None:
        try:
            answer = Response(await read_body(receive, MOST))
        except ClientGone:
            self.left.set()
            return
        except BodyTooLarge as error:
            answer = response_to(error)
        await answer.send(send)

    async def _slow(self, receive: Receive, send: Send) -> None:
        """Waits until it is let go, or the client leaves."""

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()

        leaving = asyncio.create_task(gone())
        releasing = asyncio.create_task(self.release.wait())
        try:
            await asyncio.wait({leaving, releasing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            releasing.cancel()
        await Response(b"at last").send(send)

    async def _unread(self, _receive: Receive, send: Send) -> None:
        await self.release.wait()
        await Response(b"at last").send(send)

    async def _broken(self, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError("secret")

    async def _half(self, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ZeroDivisionError("secret")

    async def _silent(self, _receive: Receive, _send: Send) -> None:
        return

    async def _endless(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        message = {"type": "http.response.body", "body": b"x" * 65_536, "more_body": True}
        await receive()
        leaving = asyncio.create_task(_next(receive))
        while not leaving.done():
            await send(message)
            await asyncio.sleep(0)
        self.left.set()


async def _next(receive: Receive) -> object:
    return await receive()


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        async with asyncio.timeout(SECONDS):
            await self._writer.drain()

    async def answer(self, *, bodiless: bool = False) -> Reply:
        """The next answer. `bodiless`: to HEAD, whose head tells of a body that does not come."""
        async with asyncio.timeout(SECONDS):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            size = 0 if bodiless else int(headers.get("content-length", 0))
            return Reply(int(head[0].split()[1]), headers, await self._reader.readexactly(size))

    async def ask(self, data: bytes) -> Reply:
        """Send, and read the answer."""
        await self.send(data)
        return await self.answer()

    async def closed(self) -> bytes:
        """What is left until the server closes."""
        async with asyncio.timeout(SECONDS):
            return await self._reader.read()

    async def half_close(self) -> None:
        """Say that no more will come."""
        self._writer.write_eof()

    async def close(self) -> None:
        """Leave."""
        self._writer.close()
        try:
            async with asyncio.timeout(SECONDS):
                await self._writer.wait_closed()
        except ConnectionError:
            return


class Reply:
    """An answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def code(self) -> str:
        """The error's code, if it is an error in the one shape of errors, and safe to be shown."""
        assert self.headers["content-type"] == "application/json"
        assert b"Traceback" not in self.body
        assert b"secret" not in self.body
        told: dict[str, Any] = json.loads(self.body)
        assert set(told) == {"error"}
        assert set(told["error"]) == {"code", "message", "details"}
        assert told["error"]["message"].endswith(".")
        code: str = told["error"]["code"]
        return code


class Running:
    """A server on a port of the loopback, and the connections to it."""

    def __init__(self, port: int, stop: asyncio.Event) -> None:
        self.port = port
        self.stop = stop
        self.clients: list[Client] = []

    async def connect(self, address: str = "127.0.0.1") -> Client:
        """A connection of its own, that may send any bytes. `address`: where it comes from."""
        source = (address, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=source)
        client = Client(reader, writer)
        self.clients.append(client)
        return client

    async def leave(self) -> None:
        """Close all connections."""
        for client in self.clients:
            await client.close()


class World(Running):
    """A server of a small application."""

    def __init__(
        self,
        application: Application,
        port: int,
        stop: asyncio.Event,
        serving: asyncio.Task[None],
    ) -> None:
        super().__init__(port, stop)
        self.application = application
        self.serving = serving


@asynccontextmanager
async def world(limits: ConnectionLimits | None = None) -> AsyncIterator[World]:
    """Serve in this loop."""
    application, stop, ready = Application(), asyncio.Event(), asyncio.Event()
    sockets = bind("127.0.0.1", 0)
    serving = asyncio.create_task(
        serve(
            application,
            sockets,
            stop,
            limits or ConnectionLimits(grace_seconds=5),
            on_ready=ready.set,
            on_stop=application.release.set,
        )
    )
    running = World(application, sockets[0].getsockname()[1], stop, serving)
    try:
        async with asyncio.timeout(SECONDS):
            await ready.wait()
        yield running
    finally:
        stop.set()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({serving})
        await running.leave()


@asynccontextmanager
async def listening(asgi: Any) -> AsyncIterator[int]:
    """Serve any application in this loop: its port."""
    stop, ready = asyncio.Event(), asyncio.Event()
    sockets = bind("127.0.0.1", 0)
    limits = ConnectionLimits(grace_seconds=5)
    running = asyncio.create_task(serve(asgi, sockets, stop, limits, on_ready=ready.set))
    try:
        async with asyncio.timeout(SECONDS):
            await ready.wait()
        yield sockets[0].getsockname()[1]
    finally:
        stop.set()
        async with asyncio.timeout(SECONDS):
            await running


def get(path: str, *headers: str) -> bytes:
    """A request without a body."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *headers, "", ""]).encode()


def post(body: bytes, *headers: str, path: str = "/echo") -> bytes:
    """A request with a body."""
    head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


CHUNKED = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
