"""`webhook` against a real server."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane.handlers import WebhookSettings
from fairlane.handlers.webhook import Undelivered, parse_url, retry_after, webhook_handler
from fairlane.runtime.outcomes import Fail, Retry
from tests.fixtures.certificates import certificates
from tests.handlers.kit import TASK_ID, answer, context, site

LOCAL = (ip_network("127.0.0.0/8"),)
OPEN = WebhookSettings(allow_http=True, networks=LOCAL)


async def deliver(url: str, settings: WebhookSettings = OPEN, **payload: Any) -> dict[str, Any]:
    handler: Callable[..., Awaitable[dict[str, Any]]] = webhook_handler(settings)
    return await handler(context(), url=url, **payload)


async def test_a_body_is_posted_as_json() -> None:
    async with site(answer(201, b"thanks")) as server:
        url = f"http://127.0.0.1:{server.port}/hook?a=1"
        result = await deliver(url, body={"n": 1}, headers={"X-Secret": "s"})
    assert result == {"status": 201, "body": "thanks"}
    assert server.asked[0].startswith(b"POST /hook?a=1 HTTP/1.1\r\n")
    assert server.body == b'{"n":1}'
    assert server.headers["host"] == f"127.0.0.1:{server.port}"
    assert server.headers["content-type"] == "application/json"
    assert server.headers["x-secret"] == "s"
    assert server.headers["idempotency-key"] == TASK_ID
    assert server.headers["accept-encoding"] == "identity"


async def test_get_has_no_body() -> None:
    async with site(answer(204)) as server:
        result = await deliver(f"http://127.0.0.1:{server.port}", method="GET", body={"n": 1})
    assert result == {"status": 204, "body": ""}
    assert server.asked[0].startswith(b"GET / HTTP/1.1\r\n")
    assert (server.body, server.headers["content-length"]) == (b"", "0")
    assert "content-type" not in server.headers


async def test_headers_may_be_chosen_but_not_those_of_the_connection() -> None:
    async with site(answer(200)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        await deliver(url, headers={"content-type": "text/plain", "user-agent": "me"})
        assert server.headers["content-type"] == "text/plain"
        assert server.headers["user-agent"] == "me"
        for name in ("Host", "content-length", "Transfer-Encoding", "Connection"):
            with pytest.raises(Fail, match=name):
                await deliver(url, headers={name: "x"})
        for headers in ({"a": "b\r\nc: d"}, {"a b": "c"}, {"a\r\nb": "c"}, {"": "c"}):
            with pytest.raises(Fail, match="cannot be sent: a header is not valid"):
                await deliver(url, headers=headers)
    assert len(server.asked) == 1


async def test_over_tls(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(made.certificate, made.key)
    trusting = WebhookSettings(networks=LOCAL, ca_file=str(made.authority))
    async with site(answer(200, b"ok"), tls) as server:
        for host in ("localhost", "127.0.0.1"):
            settings = msgspec.structs.replace(trusting, networks=(*LOCAL, ip_network("::1")))
            result = await deliver(f"https://{host}:{server.port}/", settings)
            assert result == {"status": 200, "body": "ok"}
        assert server.headers["host"] == f"127.0.0.1:{server.port}"
        distrusting = WebhookSettings(networks=LOCAL)
        with pytest.raises(Undelivered, match="certificate"):
            await deliver(f"https://127.0.0.1:{server.port}/", distrusting)


async def test_a_certificate_for_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(made.certificate, made.key)
    monkeypatch.setattr(socket, "getaddrinfo", _resolver([["127.0.0.1"]]))
    settings = WebhookSettings(networks=LOCAL, ca_file=str(made.authority))
    async with site(answer(200), tls) as server:
        with pytest.raises(Undelivered, match="certificate") as caught:
            await deliver(f"https://other.example:{server.port}/", settings)
        assert "other.example" not in str(caught.value)
        assert server.asked == []


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_success(status: int) -> None:
    async with site(answer(status)) as server:
        assert (await deliver(f"http://127.0.0.1:{server.port}/"))["status"] == status


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 425, 429])
async def test_what_may_go_better_next_time(status: int) -> None:
    async with site(answer(status, b"secret")) as server:
        with pytest.raises(Undelivered, match=f"answered {status}") as caught:
            await deliver(f"http://127.0.0.1:{server.port}/")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value), "it is the payload's"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
async def test_what_will_not(status: int) -> None:
    async with site(answer(status)) as server:
        with pytest.raises(Fail, match=f"answered {status}") as caught:
            await deliver(f"http://127.0.0.1:{server.port}/")
    assert caught.value.code == f"HTTP_{status}"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_may_ask_to_wait(status: int) -> None:
    async with site(answer(status, Retry_After="120")) as server:
        with pytest.raises(Retry) as caught:
            await deliver(f"http://127.0.0.1:{server.port}/")
    assert caught.value.after == 120


async def test_a_server_cannot_ask_for_a_flood() -> None:
    async with site(answer(503, Retry_After="0")) as server:
        with pytest.raises(Retry) as caught:
            await deliver(f"http://127.0.0.1:{server.port}/")
    assert caught.value.after == 1


async def test_redirects_are_not_followed() -> None:
    async with site(answer(200)) as inner:
        location = f"http://127.0.0.1:{inner.port}/"
        for status in (301, 302, 303, 307, 308):
            async with site(answer(status, Location=location)) as outer:
                with pytest.raises(Fail, match="redirects"):
                    await deliver(f"http://127.0.0.1:{outer.port}/")
        assert inner.asked == []


async def test_only_the_beginning_of_an_answer_is_read() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100_000
    async with site(endless) as server:
        result = await deliver(f"http://127.0.0.1:{server.port}/")
        await asyncio.wait_for(server.closed.wait(), 30)
    assert result == {"status": 200, "body": "x" * 1024}


async def test_an_answer_that_is_no_text_is_shown_all_the_same() -> None:
    async with site(answer(200, b"\xff\x00")) as server:
        result = await deliver(f"http://127.0.0.1:{server.port}/")
    assert result["body"] == "\ufffd\x00"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"HTTP/1.1 200 OK\r\n\r",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
        b"\r\n",
    ],
    ids=["cut", "ssh", "short", "chunks", "headers", "continue", "empty"],
)
async def test_what_is_no_answer_is_tried_again(nonsense: bytes) -> None:
    async with site(nonsense) as server:
        with pytest.raises(Undelivered, match="could not be reached"):
            await deliver(f"http://127.0.0.1:{server.port}/")


async def test_nobody_there_is_tried_again() -> None:
    async with site(answer(200)) as server:
        port = server.port
    with pytest.raises(Undelivered, match="could not be reached"):
        await deliver(f"http://127.0.0.1:{port}/")


async def test_silence_is_tried_again() -> None:
    async with site(b"") as server:
        with pytest.raises(Undelivered, match="did not answer within"):
            await deliver(f"http://127.0.0.1:{server.port}/", timeout=0.05)
        quick = msgspec.structs.replace(OPEN, timeout=0.05)
        with pytest.raises(Undelivered, match=r"0\.05 s"):
            await deliver(f"http://127.0.0.1:{server.port}/", quick, timeout=3600)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "https://",
        "https:///path",
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://[::1/",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https://example.com/\r\nX: y",
        "https://example.com/\u00e4",
        "https://ex\tample.com/",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(Fail) as caught:
        parse_url(url, allow_http=True)
    assert "secret" not in str(caught.value)


async def test_https_only_unless_allowed() -> None:
    with pytest.raises(Fail, match="FAIRLANE_WEBHOOK_ALLOW_HTTP"):
        await deliver("http://example.com/", WebhookSettings())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0x7f.1"]
)
async def test_private_addresses_are_refused_unless_allowed(host: str) -> None:
    settings = WebhookSettings(allow_http=True)
    async with site(answer(200)) as server:
        with pytest.raises(Fail) as caught:
            await deliver(f"http://{host}:{server.port}/", settings)
    assert caught.value.code == "WEBHOOK_REFUSED"
    assert server.asked == []


async def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that changes its mind after it was looked up gets no second chance."""
    looked_up = _resolver([["127.0.0.1"], ["127.0.0.2"]])
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    settings = WebhookSettings(allow_http=True, networks=(ip_network("127.0.0.1"),))
    async with site(answer(200)) as server:
        url = f"http://rebinding.example:{server.port}/"
        assert (await deliver(url, settings))["status"] == 200
        assert server.headers["host"] == f"rebinding.example:{server.port}"
        with pytest.raises(Fail, match="public Internet"):
            await deliver(url, settings)  # the next delivery looks again, and checks again
        assert len(server.asked) == 1


async def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _resolver([["127.0.0.3", "127.0.0.1"]]))
    async with site(answer(200)) as server:
        assert (await deliver(f"http://two.example:{server.port}/"))["status"] == 200


async def test_a_name_that_is_unknown_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Undelivered, match="cannot be resolved"):
        await deliver("https://nowhere.example/")


def _resolver(answers: list[list[str]]) -> Callable[..., Any]:
    """One that says something else each time."""
    left = iter(answers)

    def getaddrinfo(_: str, port: int, *__: Any, **___: Any) -> list[Any]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(left)
        ]

    return getaddrinfo


def test_retry_after() -> None:
    assert retry_after(None) is None
    assert retry_after("0") == 0
    assert retry_after("7") == 7
    assert retry_after("9" * 500) == 86_400
    for nonsense in ("", "-1", "soon", "1.5", "\u0663"):
        assert retry_after(nonsense) is None
    soon = datetime.now(UTC) + timedelta(hours=1)
    found = retry_after(format_datetime(soon, usegmt=True))
    assert found is not None
    assert 3500 < found <= 3600
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 -0000") == 0
