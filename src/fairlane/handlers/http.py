"""One HTTP request to an address that was checked before: see docs/decisions/0006."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

import msgspec

from fairlane.handlers.addresses import Address
from fairlane.http_client import AsyncConnection, Reply, Request, host_header


class Target(msgspec.Struct, frozen=True):
    """Where a request goes. `host` is a name or an address without brackets."""

    host: str
    port: int
    path: str
    tls: bool


async def request(
    target: Target,
    addresses: Sequence[Address],
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    keep: int,
    context: ssl.SSLContext,
) -> Reply:
    """Send a request to the first address that can be reached, and read at most `keep` bytes of the
    reply's body. The caller limits the time.

    Raises OSError or ProtocolError if there is no reply, InvalidRequest for headers that cannot be
    sent.
    """
    connection = await _connect(target, addresses, keep, context)
    try:
        host = ("Host", host_header(target.host, target.port, tls=target.tls))
        return await connection.request(
            Request(method, target.path, [host, *headers.items()], body)
        )
    finally:
        connection.close()


async def _connect(
    target: Target, addresses: Sequence[Address], keep: int, context: ssl.SSLContext
) -> AsyncConnection:
    failure = OSError(f"{target.host} has no address")
    for address in addresses:
        try:
            # By address, not by name: a second look-up might return one that was not checked.
            return await AsyncConnection.open(
                str(address),
                target.port,
                context if target.tls else None,
                name=target.host,
                keep=keep,
            )
        except OSError as error:  # a timeout is one as well
            failure = error
    raise failure
