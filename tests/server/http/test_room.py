"""Room for connections: nobody takes that of the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn.server import ServerState

from fairlane.server.addresses import counted_as
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.http.protocol import Protocol
from fairlane.server.http.serving import _config
from fairlane.server.http.watch import ConnectionWatch
from tests.server.http.kit import SECONDS, Application, Client, get, world


async def ended(client: Client) -> int | None:
    """How a connection ends that sends nothing: refused, or without a word."""
    try:
        return (await client.answer()).status
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def test_unfinished_requests_leave_room_for_other_addresses() -> None:
    """Nothing of them is idle, and those above the share of their address stay for a while."""
    limits = ConnectionLimits(connections=40, grace_seconds=5)
    async with world(limits) as server:
        for _ in range(30):
            await (await server.connect()).send(b"GET /path HTTP/1.1\r\nHost: a")
        ends = [await ended(await server.connect()) for _ in range(60)]
        assert ends == [503] * limits.refusals() + [None] * (60 - limits.refusals())
        for number in range(2, 12):
            other = await server.connect(f"127.0.0.{number}")
            assert (await other.ask(get("/path"))).status == 200, number


async def test_refused_connections_make_room_for_other_refusals() -> None:
    limits = ConnectionLimits(connections=4, linger_seconds=5, grace_seconds=5)
    async with world(limits) as server:
        for _ in range(3):
            await (await server.connect()).send(b"GET /path HTTP/1.1\r\nHost: a")
        for _ in range(3 * limits.refusals()):
            client = await server.connect()
            assert await ended(client) == 503
            await client.close()
            assert await client.closed() == b""


class Unread(asyncio.Transport):
    """A transport whose client reads nothing."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.buffer = b""

    def write(self, data: Any) -> None:
        self.buffer += data

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def is_closing(self) -> bool:
        return False

    def resume_reading(self) -> None:
        pass


async def test_a_connection_with_an_unread_response_is_not_idle() -> None:
    """It would close once the client reads, and until then take a place that nobody counts."""
    watch = ConnectionWatch(ConnectionLimits(connections=1), {})
    config = _config(Application(), watch)
    config.load()
    connection = Protocol(config, ServerState(), {}, None, watch=watch)
    transport = Unread()
    connection.connection_made(transport)
    connection.data_received(get("/path"))
    async with asyncio.timeout(SECONDS):
        while connection.cycle is None or not connection.cycle.response_complete:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert not connection.idle
    assert not watch.enter("127.0.0.2")
    transport.buffer = b""
    assert connection.idle


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002"),
        ("2001:db8:1:2::", "2001:0db8:0001:0002"),
        ("fe80::1%eth0", "fe80:0000:0000:0000"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("localhost:80", "localhost:80"),
    ],
)
def test_what_counts_as_one_address(address: str, counted: str) -> None:
    assert counted_as(address) == counted
