"""Redis over TLS. (Only Redis: the Valkey of the tests is made without.)"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fairlane.core.errors import AccessDenied, StoreError, StoreUnavailable, StoreUnusable
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.engines.redis_kit import PATIENT, counted, opened, operator, submitted
from tests.fixtures.certificates import Certificates, certificates
from tests.fixtures.servers import RedisServer, redis


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of an authority that nobody here knows."""
    return certificates(tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def server(ours: Certificates) -> Iterator[RedisServer]:
    with redis("redis", tcp=True, tls=ours) as own:
        yield own


def url(server: RedisServer, *, host: str = "127.0.0.1", **options: Any) -> str:
    return f"rediss://{host}:{server.tls_port}/0?{urlencode(options)}"


async def refused(url: str, patience: float = 0.2) -> StoreError:
    """What both sides say of it, which is the same."""
    async with opened(url, patience) as backend:
        with pytest.raises(StoreError) as awaited:
            await backend.run(backend.ops.version())
        with pytest.raises(StoreError) as blocking:
            await asyncio.to_thread(backend.run_sync, backend.ops.version())
    assert type(awaited.value) is type(blocking.value)
    assert awaited.value.__traceback__ is not None
    for error in (awaited.value, blocking.value):
        assert "Traceback" not in str(error)
        assert "_ssl.c" not in str(error)
    return awaited.value


async def test_everything_works(server: RedisServer, ours: Certificates) -> None:
    for host in ("127.0.0.1", "localhost"):
        server.flush()
        async with opened(url(server, host=host, ssl_ca_certs=ours.authority), PATIENT) as backend:
            await backend.run(backend.ops.migrate())
            wakeup = await backend.driver.listen()
            await submitted(backend)
            assert await wakeup.wait(PATIENT)
            await wakeup.aclose()
            await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))
            assert await counted(backend) == {State.QUEUED: 2}


async def test_lost_connections_are_made_again(server: RedisServer, ours: Certificates) -> None:
    server.flush()
    async with opened(url(server, ssl_ca_certs=ours.authority), PATIENT) as backend:
        await backend.run(backend.ops.migrate())
        with operator(server) as client:
            for _ in range(3):
                await submitted(backend)
                await asyncio.to_thread(backend.run_sync, backend.ops.controls())
                client.client_kill_filter(_type="normal", skipme=True)
        assert await counted(backend) == {State.QUEUED: 3}


async def test_an_authority_that_did_not_sign(server: RedisServer, theirs: Certificates) -> None:
    for trusted in (url(server, ssl_ca_certs=theirs.authority), url(server)):
        error = await refused(trusted)
        assert isinstance(error, StoreUnusable)
        assert "certificate" in str(error)
        assert "ssl_ca_certs" in str(error)


async def test_a_certificate_for_another_host(server: RedisServer, ours: Certificates) -> None:
    # The whole of 127.0.0.0/8 is this machine, but the certificate is for one address of it.
    other = url(server, host="127.0.0.2", ssl_ca_certs=ours.authority)
    with operator(server) as client:
        client.config_set("bind", "127.0.0.1 127.0.0.2")
    error = await refused(other)
    assert isinstance(error, StoreUnusable)
    assert "127.0.0.2" in str(error)
    for unchecked in ("&ssl_check_hostname=false", "&ssl_cert_reqs=none"):
        async with opened(other + unchecked) as backend:
            await backend.run(backend.ops.version())
            await asyncio.to_thread(backend.run_sync, backend.ops.version())


async def test_nothing_is_checked_if_the_url_says_so(server: RedisServer) -> None:
    async with opened(url(server, ssl_cert_reqs="none")) as backend:
        await backend.run(backend.ops.version())
        await asyncio.to_thread(backend.run_sync, backend.ops.version())


async def test_files_that_cannot_be_used(
    server: RedisServer, ours: Certificates, theirs: Certificates
) -> None:
    for files in (
        {"ssl_ca_certs": "/nonexistent"},
        {"ssl_ca_certs": Path(__file__)},
        {"ssl_certfile": ours.certificate, "ssl_keyfile": theirs.key},
    ):
        error = await refused(url(server, **files))
        assert isinstance(error, StoreUnusable)
        assert "ssl_ca_certs" in str(error)


async def test_a_server_that_wants_a_certificate(ours: Certificates, theirs: Certificates) -> None:
    with redis("redis", tls=ours, settings={"tls-auth-clients": "yes"}) as strict:
        own: dict[str, Any] = {"ssl_certfile": ours.certificate, "ssl_keyfile": ours.key}
        async with opened(url(strict, ssl_ca_certs=ours.authority, **own)) as backend:
            await backend.run(backend.ops.version())
            await asyncio.to_thread(backend.run_sync, backend.ops.version())
        # The server only hangs up, and may do so before what it says is read.
        async with opened(url(strict, ssl_ca_certs=ours.authority)) as backend:
            with pytest.raises((StoreUnavailable, AccessDenied), match="ssl_certfile"):
                await backend.run(backend.ops.version())
        foreign: dict[str, Any] = {"ssl_certfile": theirs.certificate, "ssl_keyfile": theirs.key}
        async with opened(url(strict, ssl_ca_certs=ours.authority, **foreign)) as backend:
            with pytest.raises((StoreUnavailable, AccessDenied), match="ssl_certfile"):
                await backend.run(backend.ops.version())


async def test_a_plain_url_to_a_port_with_tls(server: RedisServer) -> None:
    error = await refused(f"redis://127.0.0.1:{server.tls_port}/0")
    assert isinstance(error, StoreUnavailable)  # it hangs up, as a server does that is killed
    assert "rediss://" in str(error)


async def test_a_url_with_tls_to_a_plain_port(server: RedisServer) -> None:
    error = await refused(
        f"rediss://127.0.0.1:{server.port}/0?ssl_cert_reqs=none&socket_connect_timeout=0.5&socket_timeout=0.5"
    )
    assert "redis://" in str(error)
    assert "TLS" in str(error)
