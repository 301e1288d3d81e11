"""What a server says to requests that are not as they should be, byte by byte."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from fairlane.server.http.errors import BadRequest
from fairlane.server.http.limits import RESERVED_FILES, ConnectionLimits
from fairlane.server.http.watch import ConnectionWatch
from tests.server.http.kit import CHUNKED, MOST, SECONDS, Client, World, get, post, world

HEAD = b"GET /path HTTP/1.1\r\nHost: a\r\n"
WEBSOCKET = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
SMALL = ConnectionLimits(
    connections=4,
    requests=2,
    pipelined=3,
    body_bytes=100_000,
    linger_seconds=0.2,
    grace_seconds=5,
)


@pytest.fixture
async def server() -> AsyncIterator[World]:
    async with world() as running:
        yield running


async def test_requests_on_one_connection(server: World) -> None:
    client = await server.connect()
    assert (await client.ask(post(b"abc"))).body == b"abc"
    assert (await client.ask(get("/a%20b?c=d"))).body == b"/a b c=d a"
    assert (await client.ask(get("/echo"))).body == b""
    assert (
        await client.ask(CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n")
    ).body == b"abcde"


async def test_an_answer_tells_nothing_about_the_server(server: World) -> None:
    answer = await (await server.connect()).ask(get("/path"))
    assert "server" not in answer.headers
    assert "date" in answer.headers


async def test_a_request_in_single_bytes(server: World) -> None:
    client = await server.connect()
    for byte in post(b"abc"):
        await client.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await client.answer()).body == b"abc"


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01", 400, "bad_request", id="tls"),
        pytest.param(b"BREW / HTTP/1.1\r\n\r\n", 400, "bad_request", id="method"),
        pytest.param(b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="connect"),
        pytest.param(
            b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="connect-path"
        ),
        pytest.param(
            b"CONNECT http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="connect-url"
        ),
        pytest.param(b"CONNECT / HTTP/1.0\r\n\r\n", 400, "bad_request", id="connect-1.0"),
        pytest.param(
            b"CONNECT / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n",
            400,
            "bad_request",
            id="connect-upgrade",
        ),
        pytest.param(
            b"CONNECT / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
            400,
            "bad_request",
            id="connect-websocket",
        ),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_request", id="pri"),
        pytest.param(b"PRI * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="pri-1.1"),
        pytest.param(b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="authority"),
        pytest.param(b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="star"),
        pytest.param(
            post(b"abc", *WEBSOCKET[:2], path="/ws"), 400, "bad_request", id="websocket-body"
        ),
        pytest.param(
            get("/ws", *WEBSOCKET, "Transfer-Encoding: chunked"),
            400,
            "bad_request",
            id="websocket-chunked",
        ),
        pytest.param(get("/ws", *WEBSOCKET[:2]), 400, "bad_request", id="websocket-key"),
        pytest.param(
            get("/ws", *WEBSOCKET[:3], "Sec-WebSocket-Version: 12"),
            400,
            "bad_request",
            id="websocket-version",
        ),
        pytest.param(
            get("/ws", "Upgrade: foo", *WEBSOCKET), 426, "upgrade_required", id="websocket-or-foo"
        ),
        pytest.param(
            get("/ws", *WEBSOCKET).replace(b"GET", b"HEAD"),
            405,
            "method_not_allowed",
            id="websocket-head",
        ),
        pytest.param(
            get("/ws", *WEBSOCKET, "X: " + "y" * 9_000),
            431,
            "headers_too_large",
            id="websocket-long",
        ),
        pytest.param(get("/" + "y" * 9_000, *WEBSOCKET), 414, "url_too_long", id="websocket-url"),
        pytest.param(
            get("/ws", *WEBSOCKET, "Sec-WebSocket-Protocol: \xff;").replace(b"\xc3\xbf", b"\xff"),
            400,
            "bad_request",
            id="websocket-bytes",
        ),
        pytest.param(b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="space"),
        pytest.param(b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="fragment"),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="non-ascii"),
        pytest.param(b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", id="ftp"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, "bad_request", id="no-host"),
        pytest.param(HEAD + b"Host: b\r\n\r\n", 400, "bad_request", id="two-hosts"),
        pytest.param(HEAD + b"X : y\r\n\r\n", 400, "bad_request", id="space-in-name"),
        pytest.param(HEAD + b"X: y\r\n z\r\n\r\n", 400, "bad_request", id="folded"),
        pytest.param(HEAD + b"X: \0\r\n\r\n", 400, "bad_request", id="nul"),
        pytest.param(
            b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400, "unsupported_http_version", id="2.0"
        ),
        pytest.param(b"GET /\r\n\r\n", 400, "unsupported_http_version", id="0.9"),
        pytest.param(CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n", 400, "bad_request", id="both"),
        pytest.param(
            post(b"", "Transfer-Encoding: chunked"), 400, "bad_request", id="both-reversed"
        ),
        pytest.param(post(b"abc", "Content-Length: 4"), 400, "bad_request", id="two-lengths"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", 400, "bad_request", id="negative"),
        pytest.param(HEAD + b"Content-Length: +1\r\n\r\n", 400, "bad_request", id="plus"),
        pytest.param(
            CHUNKED.replace(b"chunked", b"gzip, chunked"), 400, "bad_request", id="gzip-chunked"
        ),
        pytest.param(CHUNKED.replace(b"/1.1", b"/1.0"), 400, "bad_request", id="1.0-chunked"),
        pytest.param(CHUNKED + b"F" * 20 + b"\r\n", 400, "bad_request", id="huge-chunk"),
        pytest.param(CHUNKED + b"zz\r\n", 400, "bad_request", id="no-chunk"),
        pytest.param(CHUNKED + b"3\r\nabcdef\r\n", 400, "bad_request", id="long-chunk"),
        pytest.param(
            HEAD + b"X: " + b"y" * 100_000, 431, "headers_too_large", id="large-unfinished"
        ),
        pytest.param(
            HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n", 431, "headers_too_large", id="large"
        ),
        pytest.param(HEAD + b"X: y\r\n" * 1_000 + b"\r\n", 431, "headers_too_large", id="many"),
        pytest.param(get("/" + "y" * 40_000), 414, "url_too_long", id="url"),
        pytest.param(b"GET /" + b"y" * 500_000, 414, "url_too_long", id="url-unfinished"),
        pytest.param(
            CHUNKED + b"0\r\nX: " + b"y" * 500_000, 431, "headers_too_large", id="trailer"
        ),
        pytest.param(
            HEAD + b"Content-Length: 17000000\r\n\r\n", 413, "body_too_large", id="length"
        ),
    ],
)
async def test_what_is_refused(
    server: World, request_: bytes, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = await server.connect()
    if request_.endswith(b"y"):  # unfinished: the end of a piece is what it is found at
        await client.send(request_[:100])
        request_ = request_[100:] + b"y" * 300_000
    answer = await client.ask(request_)
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["connection"] == "close"
    assert await client.closed() == b""
    assert (await (await server.connect()).ask(get("/path"))).status == 200
    assert sum(map(len, caplog.messages)) < 1_000
    assert not any(record.exc_info for record in caplog.records)


async def test_a_chunk_that_claims_too_much(server: World) -> None:
    """It is refused when more has come than the operation takes: nothing is set aside for it."""
    client = await server.connect()
    answer = await client.ask(CHUNKED + b"FFFFFFFFF\r\n" + b"x" * (MOST + 1))
    assert (answer.status, answer.code) == (413, "body_too_large")


async def test_a_body_over_the_limit_of_the_operation(server: World) -> None:
    client = await server.connect()
    body = b"x" * (MOST + 1)
    assert (await client.ask(post(body[1:]))).status == 200
    assert (await client.ask(post(body))).code == "body_too_large"
    assert (
        await client.ask(CHUNKED + b"%x\r\n%s\r\n" % (len(body), body))
    ).code == "body_too_large"
    await client.send(b"0\r\n\r\n")
    assert (await client.ask(post(b"usable"))).body == b"usable"


async def test_a_refused_body_is_not_read_for_ever() -> None:
    async with world(SMALL) as server:
        client = await server.connect()
        assert (await client.ask(CHUNKED + b"FFFFFFFF\r\n" + b"x" * 2_000)).status == 413
        async with asyncio.timeout(SECONDS):
            with pytest.raises(ConnectionError):
                await _send_on(client)


async def _send_on(client: Client) -> None:
    while True:
        await client.send(b"x" * 10_000)


async def test_a_refusal_can_be_read_while_the_body_is_still_sent(server: World) -> None:
    client = await server.connect()
    await client.send(HEAD + b"Content-Length: 30000000\r\n\r\n")
    await client.send(b"x" * 3_000_000)
    assert (await client.answer()).code == "body_too_large"
    assert server.application.calls == 0


async def test_compressed_bodies(server: World) -> None:
    client = await server.connect()
    answer = await client.ask(post(b"\x1f\x8b", "Content-Encoding: gzip"))
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert (await client.ask(post(b"abc", "Content-Encoding: identity"))).body == b"abc"


async def test_a_client_that_waits_to_be_asked(server: World) -> None:
    client = await server.connect()
    expecting = b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
    assert (await client.ask(expecting + b"3\r\n\r\n")).status == 100
    assert (await client.ask(b"abc")).body == b"abc"
    assert (await client.ask(expecting + b"99999999\r\n\r\n")).status == 413


async def test_a_body_longer_than_it_says(server: World) -> None:
    """What is too much is the next request, and no good one."""
    client = await server.connect()
    assert (await client.ask(post(b"abc") + b"defg")).body == b"abc"
    assert (await client.answer()).code == "bad_request"


@pytest.mark.parametrize(
    "part", [HEAD, post(b"abc")[:-1], CHUNKED + b"3\r\na"], ids=["headers", "body", "chunk"]
)
async def test_a_request_that_ends_too_early(server: World, part: bytes) -> None:
    client = await server.connect()
    await client.send(part)
    await client.half_close()
    assert (await client.answer()).code == "bad_request"
    assert await client.closed() == b""


async def test_http_1_0(server: World) -> None:
    client = await server.connect()
    answer = await client.ask(b"GET /path HTTP/1.0\r\n\r\n")
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert await client.closed() == b""


async def test_urls_as_for_proxies(server: World) -> None:
    client = await server.connect()
    assert (await client.ask(get("http://evil:81/x?y"))).body == b"/x y evil:81"
    assert (await client.ask(get("http://evil"))).body == b"/  evil"
    assert (await client.ask(get("//evil/x"))).body == b"//evil/x  a"
    assert (await client.ask(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")).body == b"*  a"


async def test_an_upgrade_that_is_not_offered_loses_no_body(server: World) -> None:
    """As Java's own client asks for HTTP/2 with its first request."""
    client = await server.connect()
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIA")
    assert (await client.ask(post(b"abc", *offer))).body == b"abc"
    request = post(b"abc", *offer)
    await client.send(request[:-2])
    assert (await client.ask(request[-2:] + post(b"def"))).body == b"abc"
    assert (await client.answer()).body == b"def"


@pytest.mark.parametrize(
    "offer",
    [
        ("Upgrade: foo", "Connection: upgrade"),
        ("Upgrade: foo",),
        ("Upgrade: websocket",),
        ("Connection: upgrade",),
        ("Upgrade: foo, websocket", "Connection: upgrade"),
        ("Upgrade: h2c", "Proxy-Connection: upgrade"),
    ],
    ids=str,
)
async def test_other_upgrades_are_ignored(server: World, offer: tuple[str, ...]) -> None:
    client = await server.connect()
    assert (await client.ask(get("/path", *offer))).body == b"/path  a"
    assert (await client.ask(post(b"abc", *offer))).body == b"abc"
    assert (await client.ask(get("http://b/x?y", *offer))).body == b"/x y b"


async def test_http_1_0_has_no_upgrades(server: World) -> None:
    client = await server.connect()
    request = get("/path", *WEBSOCKET).replace(b"HTTP/1.1", b"HTTP/1.0")
    assert (await client.ask(request)).body == b"/path  a"
    assert await client.closed() == b""


async def test_a_hundred_upgrades_at_once(server: World) -> None:
    """One after the other, not one inside the other."""
    client = await server.connect()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_depth() + 100)
    try:
        offer = ("Connection: upgrade", "Upgrade: foo")
        await client.send(b"".join(post(b"%d" % number, *offer) for number in range(100)))
        assert [(await client.answer()).body for _ in range(100)] == [b"%d" % n for n in range(100)]
    finally:
        sys.setrecursionlimit(limit)


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


async def test_websockets(server: World) -> None:
    async with asyncio.timeout(SECONDS), connect(f"ws://127.0.0.1:{server.port}/ws") as socket:
        await socket.send("hello")
        assert await socket.recv() == "hello"
        await socket.send("x" * (ConnectionLimits().message_bytes + 1))
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_a_websocket_waits_for_the_answers_before_it(server: World) -> None:
    client = await server.connect()
    await client.send(get("/slow") + get("/ws", "Connection: Upgrade", "Upgrade: websocket"))
    await server.application.entered.wait()
    server.application.release.set()
    assert (await client.answer()).body == b"at last"
    assert (await client.answer()).code == "bad_request"


async def test_a_hundred_requests_at_once(server: World) -> None:
    client = await server.connect()
    await client.send(b"".join(post(b"%d" % number) for number in range(100)))
    assert [(await client.answer()).body for _ in range(100)] == [b"%d" % n for n in range(100)]


async def test_too_many_requests_ahead() -> None:
    async with world(SMALL) as server:
        client = await server.connect()
        await client.send(get("/path") * 6)
        assert [(await client.answer()).status for _ in range(5)] == [200, 200, 200, 200, 400]
        assert await client.closed() == b""


@pytest.mark.parametrize("bad", [b"nonsense\r\n\r\n", CHUNKED + b"zz\r\n"], ids=["head", "body"])
async def test_a_refusal_waits_its_turn(server: World, bad: bytes) -> None:
    client = await server.connect()
    await client.send(get("/slow") + get("/path") + bad)
    await server.application.entered.wait()
    server.application.release.set()
    assert (await client.answer()).body == b"at last"
    assert (await client.answer()).body == b"/path  a"
    assert (await client.answer()).code == "bad_request"
    assert await client.closed() == b""
    assert server.application.calls == 2


async def test_a_client_that_leaves_with_requests_sent_ahead(server: World) -> None:
    client = await server.connect()
    await client.send(get("/slow") + get("/path"))
    await server.application.entered.wait()
    await client.close()
    async with asyncio.timeout(SECONDS):
        await server.application.left.wait()


async def test_too_many_requests_at_once() -> None:
    async with world(SMALL) as server:
        waiting = [await server.connect() for _ in range(2)]
        for client in waiting:
            server.application.entered.clear()
            await client.send(get("/slow"))
            await server.application.entered.wait()
        client = await server.connect()
        answer = await client.ask(post(b"abc"))
        assert (answer.status, answer.code) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        server.application.release.set()
        assert (await waiting[0].answer()).body == b"at last"
        assert (await waiting[1].answer()).body == b"at last"
        assert (await client.ask(post(b"usable"))).body == b"usable"


async def busy(server: World, number: int) -> list[Client]:
    """Connections with a request that goes on."""
    clients = []
    for _ in range(number):
        server.application.entered.clear()
        clients.append(await server.connect())
        await clients[-1].send(get("/slow"))
        await server.application.entered.wait()
    return clients


MANY = msgspec.structs.replace(SMALL, requests=100)


async def test_too_many_connections() -> None:
    async with world(MANY) as server:
        clients = await busy(server, 3)  # of the four, one address may have three
        refused = await server.connect()
        answer = await refused.answer()
        assert (answer.status, answer.code) == (503, "busy")
        assert await refused.closed() == b""
        for client in (refused, clients[0]):
            await client.close()
        async with asyncio.timeout(SECONDS):
            await server.application.left.wait()
        assert (await (await server.connect()).ask(get("/path"))).status == 200
        server.application.release.set()
        assert (await clients[1].answer()).body == b"at last"


async def test_far_too_many_connections() -> None:
    async with world(MANY) as server:
        clients = await busy(server, 3)
        ends = [await _end(await server.connect()) for _ in range(20)]
        assert set(ends) == {503, None}
        server.application.release.set()
        assert [(await client.answer()).body for client in clients] == [b"at last"] * 3


async def test_idle_connections_make_room() -> None:
    """Of those from the same address, those nearest to their deadline go first."""
    async with world(MANY) as server:
        (worker,) = await busy(server, 1)
        silent = await server.connect()  # has a few seconds to begin a request
        asked = await server.connect()
        assert (await asked.ask(get("/path"))).status == 200
        for number in range(20):
            client = await server.connect()
            assert (await client.ask(get("/path"))).status == 200, number
            if number == 0:
                assert await silent.closed() == b""
                assert (await asked.ask(get("/path"))).status == 200
        assert await asked.closed() == b""
        server.application.release.set()
        assert (await worker.answer()).body == b"at last"


async def test_idle_connections_leave_room_for_other_addresses() -> None:
    limits = ConnectionLimits(connections=40, grace_seconds=5)
    async with world(limits) as server:
        idle = [await server.connect() for _ in range(120)]
        other = await server.connect("127.0.0.2")
        assert (await other.ask(get("/path"))).status == 200
        assert (await idle[-1].ask(get("/path"))).status == 200
        for client in idle:
            await client.close()
        addresses = [f"127.0.0.{number}" for number in range(3, 100)]
        far = [await server.connect(address) for address in addresses]
        assert (await far[-1].ask(get("/path"))).status == 200
        assert await far[0].closed() == b""


async def test_websockets_count_as_connections_until_they_end() -> None:
    async with world(MANY) as server:
        where = f"ws://127.0.0.1:{server.port}/ws"
        async with asyncio.timeout(SECONDS):
            async with connect(where), connect(where), connect(where):
                assert (await (await server.connect()).answer()).code == "busy"
            for _ in range(10):
                async with connect(where) as socket:
                    await socket.send("hello")
                    assert await socket.recv() == "hello"


async def _end(client: Client) -> int | None:
    """How a connection ends that sends nothing: refused, or without a word."""
    try:
        return (await client.answer()).status
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def test_connections_need_files() -> None:
    limits = ConnectionLimits(connections=10_000)
    assert limits.within(100_000) == limits
    few = limits.within(1_024)
    assert 800 < few.connections < few.connections + few.refusals() <= 1_024 - RESERVED_FILES


async def test_an_application_that_breaks(server: World, caplog: pytest.LogCaptureFixture) -> None:
    client = await server.connect()
    for path in ("/broken", "/silent"):
        answer = await client.ask(get(path))
        assert (answer.status, answer.code) == (500, "internal_error")
    assert (await client.ask(get("/path"))).status == 200
    assert (await client.ask(get("/half"))).status == 200
    assert await client.closed() == b"4\r\nhalf\r\n"  # and no end: it is not taken for the whole
    assert len(caplog.records) == 3


async def test_one_line_for_a_refusal(server: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="fairlane.server"):
        assert (await (await server.connect()).ask(b"\r\n\x1b[31m\r\n\r\n")).status == 400
    (record,) = caplog.records
    assert record.getMessage().startswith("Refused a request from 127.0.0.1: 400 bad_request: ")
    assert record.getMessage().isprintable()


async def test_a_flood_of_refusals_is_no_flood_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    watch = ConnectionWatch(ConnectionLimits(), {})
    watch.start()
    for _ in range(20):
        watch.log_refusal(BadRequest(), None)
    async with asyncio.timeout(SECONDS):
        while "15 more requests were refused" not in caplog.messages:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    watch.stop()
    assert len(caplog.messages) == 6
