"""An answer arrives the same in whatever pieces an application gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlane.server.requests import Receive, Scope
from fairlane.server.responses import Send
from tests.server.http.kit import Client, get, listening

Message = dict[str, Any]


def start(*headers: tuple[bytes, bytes], status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


SIX = (b"content-length", b"6")
ANSWERS: dict[str, list[Message]] = {
    "/whole": [start(SIX, (b"x-name", b"value")), part(b"abcdef")],
    "/parts": [start(SIX, (b"x-name", b"value")), part(b"abc", more=True), part(b"def")],
    "/last": [start(SIX, (b"connection", b"close")), part(b"abcdef")],
    "/cookie": [start(SIX, (b"set-cookie", b"a=b")), part(b"abcdef")],
    "/nothing": [{"type": "http.response.start", "status": 204}, {"type": "http.response.body"}],
    "/chunks": [start(), part(b"abc", more=True), part(b"def")],
    "/forged": [start(SIX, (b"x-name", b"a\r\nx-other: b")), part(b"abcdef")],
    "/begun": [start(SIX)],
}


async def application(scope: Scope, _receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        for message in ANSWERS[scope["path"]]:
            await send(message)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with listening(application) as port:
        connected = Client(*await asyncio.open_connection("127.0.0.1", port))
        try:
            yield connected
        finally:
            await connected.close()


@pytest.mark.parametrize("path", ["/whole", "/parts"])
async def test_an_answer_of_known_length(client: Client, path: str) -> None:
    for _ in range(2):
        reply = await client.ask(get(path))
        assert (reply.status, reply.body) == (200, b"abcdef")
        assert reply.headers["x-name"] == "value"
        assert "date" in reply.headers
        assert "transfer-encoding" not in reply.headers


async def test_the_head_alone(client: Client) -> None:
    await client.send(get("/whole").replace(b"GET", b"HEAD", 1))
    reply = await client.answer(bodiless=True)
    assert (reply.status, reply.headers["content-length"]) == (200, "6")
    await client.send(get("/whole", "Connection: close"))
    assert (await client.closed()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_an_answer_without_a_body(client: Client) -> None:
    reply = await client.ask(get("/nothing"))
    assert (reply.status, reply.body) == (204, b"")
    assert (await client.ask(get("/cookie"))).headers["set-cookie"] == "a=b"


async def test_an_answer_of_unknown_length(client: Client) -> None:
    reply = await client.ask(get("/chunks", "Connection: close"))
    assert reply.headers["transfer-encoding"] == "chunked"
    assert await client.closed() == b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"


async def test_the_last_answer_of_a_connection(client: Client) -> None:
    reply = await client.ask(get("/last"))
    assert (reply.body, reply.headers["connection"]) == (b"abcdef", "close")
    assert await client.closed() == b""


async def test_a_client_that_wants_no_other_answer(client: Client) -> None:
    reply = await client.ask(get("/whole", "Connection: close"))
    assert (reply.body, reply.headers["connection"]) == (b"abcdef", "close")
    assert await client.closed() == b""


@pytest.mark.parametrize("path", ["/forged", "/begun"])
async def test_what_cannot_be_sent_is_an_error(client: Client, path: str) -> None:
    """A header that would be two, and a head without a body: nothing of it has gone out yet."""
    for _ in range(2):
        reply = await client.ask(get(path))
        assert (reply.status, reply.code) == (500, "internal_error")
        assert "x-other" not in reply.headers
