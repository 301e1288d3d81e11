"""Addresses, and processes that share one."""

import asyncio
import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette

from fairlane.core.errors import SchemaMissing
from fairlane.server.http.listening import (
    AddressUnavailable,
    InvalidAddress,
    bind,
    bind_path,
    inherited,
)
from fairlane.server.http.serving import serve
from tests.server.http.kit import SECONDS, Application, Client, get

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: the path of a socket has little room."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@asynccontextmanager
async def served(*sockets: socket.socket) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(serve(Application(), sockets, stop, on_ready=ready.set))
    try:
        async with asyncio.timeout(SECONDS):
            await ready.wait()
        yield
    finally:
        stop.set()
        await serving


async def status(client: Client) -> int:
    answer = await client.ask(get("/path"))
    await client.close()
    return answer.status


async def test_every_address_of_a_host() -> None:
    sockets = bind("localhost", 0)
    names = [sock.getsockname()[:2] for sock in sockets]
    assert len({port for _, port in names}) == 1
    # Without the name of the protocol asyncio would let answers wait for acknowledgements.
    assert {sock.proto for sock in sockets} == {socket.IPPROTO_TCP}
    async with served(*sockets):
        for host, port in names:
            assert await status(Client(*await asyncio.open_connection(host, port))) == 200


async def test_ipv6() -> None:
    (sock,) = bind("::1", 0)
    port = sock.getsockname()[1]
    async with served(sock):
        assert await status(Client(*await asyncio.open_connection("::1", port))) == 200


async def test_a_path(folder: Path) -> None:
    path = folder / "socket"
    for _ in range(2):  # the second time there is the first one's, and nobody listens
        async with served(bind_path(path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert await status(Client(*await asyncio.open_unix_connection(path))) == 200
            with pytest.raises(AddressUnavailable, match="another program listens there"):
                bind_path(path)


async def test_an_inherited_socket() -> None:
    (sock,) = bind("127.0.0.1", 0)
    port = sock.getsockname()[1]
    async with served(inherited(sock.detach())):
        assert await status(Client(*await asyncio.open_connection("127.0.0.1", port))) == 200


def test_an_address_in_use() -> None:
    (sock,) = bind("127.0.0.1", 0)
    with sock:
        port = sock.getsockname()[1]
        with pytest.raises(AddressUnavailable, match=rf"127.0.0.1:{port}: another program listens"):
            bind("127.0.0.1", port)


def test_addresses_that_cannot_be(folder: Path) -> None:
    with pytest.raises(AddressUnavailable, match="does not have that address"):
        bind("192.0.2.1", 0)
    for host, port in (("", 80), ("127.0.0.1", 65_536), ("127.0.0.1", -1), ("no..host", 80)):
        with pytest.raises(InvalidAddress):
            bind(host, port)
    (folder / "file").touch()
    with pytest.raises(AddressUnavailable, match="something else is there"):
        bind_path(folder / "file")
    with pytest.raises(AddressUnavailable, match="no such folder"):
        bind_path(folder / "missing" / "socket")


async def test_what_goes_wrong_at_the_start_is_raised() -> None:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if app.routes == []:
            raise SchemaMissing
        yield

    (sock,) = bind("127.0.0.1", 0)
    with sock, pytest.raises(SchemaMissing):
        await serve(Starlette(lifespan=lifespan), [sock], asyncio.Event())


async def test_the_application_is_told_of_its_end() -> None:
    told = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, str]]:
        told.append("begin")
        yield {"kept": "for requests"}
        told.append("end")

    stop = asyncio.Event()
    serving = serve(Starlette(lifespan=lifespan), bind("127.0.0.1", 0), stop, on_ready=stop.set)
    async with asyncio.timeout(SECONDS):
        await serving
    assert told == ["begin", "end"]


def test_processes_that_share_a_port() -> None:
    """Whoever is killed, new connections are answered, by another or by its successor."""
    command = [sys.executable, "-m", "tests.server.http.supervised"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as supervisor:
        try:
            assert supervisor.stdout is not None
            port = int(supervisor.stdout.readline())
            answered = [_process(port)]
            for _ in range(2):
                os.kill(answered[-1], signal.SIGKILL)
                _await_end(supervisor, "was ended by SIGKILL")
                answered.append(_process(port))
            assert len(set(answered)) == 3
            supervisor.terminate()
            assert supervisor.wait(SECONDS) == 0
        finally:
            supervisor.kill()


def _process(port: int) -> int:
    """Who answers; a connection waits in the socket's queue until somebody is there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/")
        return int(connection.getresponse().read())
    finally:
        connection.close()


def _await_end(supervisor: subprocess.Popen[str], text: str) -> None:
    assert supervisor.stderr is not None
    line = supervisor.stderr.readline()
    assert line.startswith("Server process ")
    assert text in line
