"""Clients that are slow, or do nothing at all."""

import asyncio

import msgspec

from fairlane.server.http.limits import ConnectionLimits
from tests.server.http.kit import CHUNKED, SECONDS, Client, World, get, post, world

HASTY = ConnectionLimits(
    header_seconds=0.3,
    body_seconds=0.3,
    idle_seconds=0.3,
    write_seconds=0.3,
    linger_seconds=0.3,
    grace_seconds=5,
)
PATIENT = msgspec.structs.replace(HASTY, header_seconds=60, body_seconds=60, idle_seconds=60)


async def test_slow_headers() -> None:
    async with world(HASTY) as server:
        client = await server.connect()
        answer = await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\nX")
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert await client.closed() == b""


async def test_a_slow_body() -> None:
    async with world(HASTY) as server:
        for part in (post(b"abc")[:-1], CHUNKED + b"3\r\na"):
            server.application.left.clear()
            client = await server.connect()
            assert (await client.ask(part)).code == "request_timeout"
            assert await client.closed() == b""
            async with asyncio.timeout(SECONDS):
                await server.application.left.wait()  # the application was told


async def test_bytes_that_drip_do_not_help() -> None:
    async with world(HASTY) as server:
        client = await server.connect()
        await client.send(b"GET / HTTP/1.1\r\n")
        dripping = asyncio.create_task(_drip(client))
        assert (await client.answer()).code == "request_timeout"
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)


async def _drip(client: Client) -> None:
    while True:
        await client.send(b"X: y\r\n")
        await asyncio.sleep(0.01)


async def test_a_second_request_has_deadlines_too() -> None:
    async with world(msgspec.structs.replace(HASTY, idle_seconds=60)) as server:
        client = await server.connect()
        part = post(b"abc")
        assert (await client.ask(part + part[:-1])).body == b"abc"
        assert (await client.answer()).code == "request_timeout"


async def test_nothing_at_all_is_closed_without_a_word() -> None:
    async with world(HASTY) as server:
        silent, newlines, idle = [await server.connect() for _ in range(3)]
        await newlines.send(b"\r\n\r\n")
        assert (await idle.ask(get("/path"))).status == 200
        for client in (silent, newlines, idle):
            assert await client.closed() == b""


async def test_an_application_may_take_its_time() -> None:
    """Deadlines are for clients; also when the application has not read all that was sent."""
    async with world(HASTY) as server:
        client, other = await server.connect(), await server.connect()
        await client.send(post(b"x" * 300_000, path="/unread"))
        await server.application.entered.wait()
        assert await other.closed() == b""  # a sweep has been
        server.application.release.set()
        assert (await client.answer()).body == b"at last"
        assert (await client.ask(get("/path"))).status == 200


async def test_an_answer_that_nobody_reads() -> None:
    async with world(PATIENT) as server:
        await (await server.connect()).send(get("/endless"))
        async with asyncio.timeout(SECONDS):
            await server.application.left.wait()


async def test_two_hundred_slow_clients_do_not_matter() -> None:
    limits = ConnectionLimits(header_seconds=2, body_seconds=2, grace_seconds=5)
    async with world(limits) as server:
        slow = [await server.connect() for _ in range(200)]
        for number, client in enumerate(slow):
            await client.send(post(b"abc")[: -1 if number % 2 else 30])
        client = await server.connect()
        answered = 0
        refused = asyncio.gather(*(_refused(client) for client in slow))
        while not refused.done():
            answered += (await client.ask(post(b"normal"))).body == b"normal"
        assert await refused == [408] * 200
        assert answered > 20


async def _refused(client: Client) -> int:
    return (await client.answer()).status


async def _stopped(server: World) -> None:
    server.stop.set()
    async with asyncio.timeout(SECONDS):
        await server.serving


async def test_stopping_ends_long_polls_and_lets_requests_finish() -> None:
    async with world() as server:
        idle, polling, sending = [await server.connect() for _ in range(3)]
        assert (await idle.ask(get("/path"))).status == 200
        await polling.send(get("/slow"))
        await server.application.entered.wait()
        server.application.entered.clear()
        await sending.send(post(b"abc")[:-1])
        await server.application.entered.wait()
        server.stop.set()
        answer = await polling.answer()
        assert (answer.body, answer.headers["connection"]) == (b"at last", "close")
        assert await idle.closed() == b""
        assert (await sending.ask(b"c")).body == b"abc"
        await _stopped(server)


async def test_stopping_has_an_end() -> None:
    async with world(ConnectionLimits(grace_seconds=0.2)) as server:
        client = await server.connect()
        await client.send(post(b"abc")[:-1])
        await server.application.entered.wait()
        await _stopped(server)
        answer = await client.answer()
        assert (answer.status, answer.code) == (503, "busy")


async def test_cancelling_ends_at_once() -> None:
    async with world(ConnectionLimits(grace_seconds=60)) as server:
        client = await server.connect()
        await client.send(post(b"abc")[:-1])
        await server.application.entered.wait()
        server.serving.cancel()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({server.serving})
        assert server.serving.cancelled()
        assert (await client.answer()).status == 503
