"""One HTTP request on one connection to an address that is already known.

No pool, no redirects, no cookies, no proxies, no compression: see docs/decisions/0006.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import h11
import msgspec

from fairlane.handlers.addresses import Address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONNECT_SECONDS: Final = 5.0
"""For one address, so that one that does not answer leaves time for the next."""
_HEAD_BYTES: Final = 64 * 1024
_CHUNK: Final = 16 * 1024


class Target(msgspec.Struct, frozen=True):
    """Where a request goes. `host` is a name or an address without brackets."""

    host: str
    port: int
    path: str
    tls: bool

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Answer(msgspec.Struct, frozen=True):
    """What came back; of the body only the beginning."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def request(
    target: Target,
    addresses: Sequence[Address],
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    keep: int,
    context: ssl.SSLContext,
) -> Answer:
    """Ask, and read no more of the answer than is kept.

    Raises OSError or h11.RemoteProtocolError when there is no answer, h11.LocalProtocolError for
    headers that cannot be sent. How long it may take is up to the caller.
    """
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
    head = h11.Request(
        method=method, target=target.path, headers=[("Host", target.authority), *headers.items()]
    )
    sent = connection.send(head) or b""
    if body:
        sent += connection.send(h11.Data(data=body)) or b""
    sent += connection.send(h11.EndOfMessage()) or b""
    async with _connected(target, addresses, context) as (reader, writer):
        writer.write(sent)
        await writer.drain()
        return await _answer(connection, reader, keep)


@asynccontextmanager
async def _connected(
    target: Target, addresses: Sequence[Address], context: ssl.SSLContext
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    failure: OSError = OSError(f"{target.host} has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    str(address),
                    target.port,
                    ssl=context if target.tls else None,
                    server_hostname=target.host if target.tls else None,
                )
        except OSError as error:  # a timeout is one as well
            failure = error
        else:
            try:
                yield reader, writer
            finally:
                writer.transport.abort()  # nothing more is wanted, not even a goodbye
            return
    raise failure


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader, keep: int) -> Answer:
    status, headers, body, received = 0, {}, bytearray(), 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            chunk = await reader.read(_CHUNK)
            received += len(chunk)
            if received > 2 * _HEAD_BYTES + keep:
                raise h11.RemoteProtocolError("the answer says nothing at great length")
            connection.receive_data(chunk)
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {
                name.decode("latin-1"): text.decode("latin-1") for name, text in event.headers
            }
        elif isinstance(event, h11.Data):
            body += event.data
        if isinstance(event, h11.EndOfMessage) or (status and len(body) >= keep):
            return Answer(status, headers, bytes(body[:keep]))
