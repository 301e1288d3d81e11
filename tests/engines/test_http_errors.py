"""What a server that refuses, is away, or is none, means to those who use it as a store."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    AccessDenied,
    BatchTooLarge,
    Conflict,
    FairlaneError,
    IdempotencyConflict,
    InvalidInput,
    InvalidPayload,
    InvalidStoreURL,
    NotAFairlaneStore,
    NotSupported,
    PayloadTooLarge,
    SchemaTooOld,
    StoreBusy,
    StoreUnavailable,
    StoreUnusable,
    WorkerGone,
)
from fairlane.core.submission import new_task
from fairlane.engines.http.errors import error_of
from fairlane.http_client import Reply

NOTHING_LISTENS = 1


def told(code: str, message: str = "so", details: str = "{}") -> bytes:
    return (
        f'{{"error": {{"code": "{code}", "message": "{message}", "details": {details}}}}}'.encode()
    )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (422, told("idempotency_conflict"), IdempotencyConflict),
        (413, told("payload_too_large"), PayloadTooLarge),
        (409, told("worker_gone"), WorkerGone),
        (409, told("conflict"), Conflict),
        (422, told("invalid_request"), InvalidInput),
        (413, told("body_too_large"), BatchTooLarge),
        (401, told("unauthorized", "A token is needed"), AccessDenied),
        (401, told("unauthorized", "This token is unknown"), AccessDenied),
        (403, told("forbidden"), AccessDenied),
        (421, told("wrong_host"), StoreUnusable),
        (429, told("too_many_requests"), StoreBusy),
        (503, told("store_unavailable"), StoreUnavailable),
        (503, told("schema_too_old"), SchemaTooOld),
        (500, told("internal_error"), StoreUnavailable),
        (404, told("not_found"), NotAFairlaneStore),
        (404, b"<html>", NotAFairlaneStore),
        (200, b"<html>", NotAFairlaneStore),
        (502, b"<html>", StoreUnavailable),
        (403, b"", AccessDenied),
        (429, b"\xff", StoreBusy),
        (
            422,
            told(
                "invalid_batch", "one", '{"errors": [{"code": "invalid_payload", "message": "p"}]}'
            ),
            InvalidPayload,
        ),
        (422, told("invalid_batch", "one", "{}"), InvalidInput),
    ],
)
def test_every_refusal_is_the_error_that_it_tells_of(
    status: int, body: bytes, kind: type[FairlaneError]
) -> None:
    error = error_of(Reply(status, body))
    assert type(error) is kind
    assert error.message


@pytest.mark.parametrize(
    ("given", "pause"),
    [(None, 0.0), ("7", 7.0), (" 2 ", 2.0), ("999999999999", 60.0), ("soon", 0.0), ("-1", 0.0)],
)
def test_how_long_a_server_wants_to_be_left_alone(given: str | None, pause: float) -> None:
    headers = [] if given is None else [(b"retry-after", given.encode())]
    error = error_of(Reply(503, told("store_unavailable"), headers))
    assert isinstance(error, StoreUnavailable)
    assert error.after == pause


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///tasks",
        "http://user:secret@host",
        "http://host?token=secret",
        "http://host#x",
        "http://host:99999",
        "http://ho st",
        "http://[::1",
    ],
)
def test_an_address_that_cannot_be_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InvalidStoreURL) as caught:
        engines.open(url)
    assert "secret" not in caught.value.message


def test_a_token_is_for_servers_and_has_to_be_one() -> None:
    with pytest.raises(InvalidStoreURL, match="for a server"):
        engines.open("sqlite://", token="fl_x")
    for bad in ("", "  ", "a\nb", "é"):
        with pytest.raises(InvalidStoreURL, match="token"):
            engines.open("http://127.0.0.1", token=bad)


def test_keys_are_for_the_server() -> None:
    with pytest.raises(NotSupported, match="give the keys to the server"):
        engines.open("http://127.0.0.1", encryption_keys="a:" + "A" * 43 + "=")


async def test_what_needs_the_store_itself_is_refused_with_a_sentence() -> None:
    backend = engines.open(f"http://127.0.0.1:{NOTHING_LISTENS}")
    for name in ("elect", "shift_clock", "tokens", "fire_due"):
        with pytest.raises(NotSupported, match="own URL"):
            await backend.run(getattr(backend.ops, name)())
    with pytest.raises(NotSupported, match="transactions"):
        backend.driver.join(object())
    with pytest.raises(NotSupported, match="transactions"):
        backend.driver.transaction()


async def test_a_server_that_is_away_is_told_after_patience() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        backend = engines.open(url, patience=0.1)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await backend.run(backend.ops.controls())
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await asyncio.to_thread(backend.run_sync, backend.ops.controls())
        await backend.driver.aclose()


@asynccontextmanager
async def listening(*answers: bytes) -> AsyncIterator[int]:
    """The port of something that gives these answers, one a connection, the last one for ever."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[Backend]:
    """A backend on something like that."""
    async with (
        listening(*answers) as port,
        engines.open(f"http://127.0.0.1:{port}", patience=5.0) as backend,
    ):
        yield backend


def http(status: str, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


CONTROLS = b'{"paused": true, "rate_limit": 0, "paused_queues": [], "types": {}}'
GOOD = http("200 OK", CONTROLS)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        http("503 Away", told("store_unavailable"), "retry-after: 0"),
        http("429 Slow down", told("too_many_requests")),
        http("502 Bad Gateway", b"<html>"),
    ],
)
async def test_what_may_pass_is_tried_again(first: bytes) -> None:
    for sync in (False, True):
        async with answering(first, first, GOOD) as backend:
            op = backend.ops.controls()
            found = await (asyncio.to_thread(backend.run_sync, op) if sync else backend.run(op))
            assert found.everything.paused


async def test_what_does_not_pass_is_told_at_once() -> None:
    async with answering(http("403 Forbidden", told("forbidden", "scope admin"))) as backend:
        with pytest.raises(AccessDenied, match="scope admin"):
            await backend.run(backend.ops.controls())


async def test_a_server_without_tls_is_told_from_one_that_is_away() -> None:
    plain = b"HTTP/1.1 400 Bad Request\r\n\r\n"

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(plain)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        secure = engines.open(f"https://127.0.0.1:{port}", patience=0.1)
        with pytest.raises(StoreUnusable, match="does not speak TLS"):
            await secure.run(secure.ops.controls())
        with pytest.raises(StoreUnusable, match="does not speak TLS"):
            await asyncio.to_thread(secure.run_sync, secure.ops.controls())


def test_a_file_of_certificates_that_is_none() -> None:
    with pytest.raises(InvalidStoreURL, match="ca_file"):
        engines.open("https://127.0.0.1", ca_file="/does/not/exist")


async def test_a_batch_that_no_server_takes_is_not_sent() -> None:
    backend = engines.open(f"http://127.0.0.1:{NOTHING_LISTENS}", patience=0.1)
    payload = b'{"x": "%s"}' % (b"x" * 200_000)
    with pytest.raises(BatchTooLarge, match="smaller batches"):
        await backend.run(backend.ops.submit([new_task("work", payload) for _ in range(100)]))


async def test_a_server_that_is_too_old_to_count_is_named() -> None:
    async with answering(http("404 Not Found", told("not_found"))) as backend:
        with pytest.raises(NotSupported, match="too old"):
            await backend.run(backend.ops.completions(["a"]))
