"""A context to call handlers with, and an HTTP server that answers what it is told to."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from fairlane.runtime.context import Context

TASK_ID = "0190a000-0000-7000-8000-000000000000"


def context() -> Context:
    """As much of a run as these handlers ask about."""
    return cast(Context, SimpleNamespace(task_id=TASK_ID))


class Site:
    """A real HTTP server: notes what it is asked, and answers with these bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self.closed = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            self.asked.append(head + await reader.readexactly(length))
            writer.write(self.answer)
            await writer.drain()
            if self.answer:
                writer.write_eof() if writer.can_write_eof() else writer.close()
            await reader.read()  # until the other side hangs up
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.close()

    @property
    def headers(self) -> dict[str, str]:
        """Of the last request, by lower-case name."""
        lines = self.asked[-1].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {
            name.lower(): text for name, text in (line.split(": ", maxsplit=1) for line in lines)
        }

    @property
    def body(self) -> bytes:
        return self.asked[-1].partition(b"\r\n\r\n")[2]


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """An answer as it goes over the wire."""
    lines = [f"HTTP/1.1 {status} Something", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def site(
    answer: bytes, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[Site]:
    """A server on a free port of 127.0.0.1."""
    site = Site(answer)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls, **options)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site
