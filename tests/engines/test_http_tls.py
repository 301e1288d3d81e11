"""A server behind a proxy that ends TLS, as docs/howto/serve.md has it."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlane import Fairlane, State
from fairlane.core.errors import StoreUnusable
from tests.conftest import Servers
from tests.e2e.chaos.app import TARGET
from tests.fixtures.certificates import Certificates, certificates
from tests.fixtures.remote import remote
from tests.fixtures.serving import ROOT
from tests.fixtures.stores import World, opened

SECONDS = 60.0
UNTRUSTED = "has a certificate that cannot be trusted"


class Site(NamedTuple):
    """A server, its store, and what it shows to prove that it is the one."""

    port: int
    behind: int
    """Its port without TLS."""
    world: World
    shown: Certificates


@pytest.fixture
async def site(servers: Servers, tmp_path: Path) -> AsyncIterator[Site]:
    shown = certificates(tmp_path)
    async with opened("sqlite-file", servers, tmp_path) as world:
        with remote(world.backend) as address:
            behind = int(address.rpartition(":")[2])
            async with proxy(behind, shown) as port:
                yield Site(port, behind, world, shown)


@asynccontextmanager
async def proxy(behind: int, shown: Certificates, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """The port of one that ends TLS in front of another port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown.certificate, shown.key)
    visits: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        visits.add(task)
        inner = await asyncio.open_connection("127.0.0.1", behind)
        try:
            await asyncio.gather(pass_on(reader, inner[1]), pass_on(inner[0], writer))
        finally:
            writer.close()
            inner[1].close()

    server = await asyncio.start_server(visit, host, 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in visits:
            task.cancel()
        await asyncio.gather(*visits, return_exceptions=True)


async def test_a_certificate_that_is_trusted(site: Site) -> None:
    url = f"https://127.0.0.1:{site.port}"
    async with Fairlane(url, ca_file=str(site.shown.authority)) as app:
        task_id = await site.world.submit()
        found = await app.get(task_id)
        again = await asyncio.to_thread(app.get_sync, task_id)
    assert found is not None
    assert found == again
    assert found.status is State.QUEUED


@pytest.mark.parametrize(
    ("host", "trusting"),
    [("127.0.0.1", False), ("127.0.0.2", True)],
    ids=["of an unknown authority", "of another host"],
)
async def test_a_certificate_that_is_not(host: str, trusting: bool, site: Site) -> None:
    ca_file = str(site.shown.authority) if trusting else None
    async with (
        proxy(site.behind, site.shown, host) as port,
        Fairlane(f"https://{host}:{port}", ca_file=ca_file) as app,
        asyncio.timeout(SECONDS),
    ):
        with pytest.raises(StoreUnusable, match=UNTRUSTED):
            await app.run(app.backend.ops.controls())
        with pytest.raises(StoreUnusable, match=UNTRUSTED):
            await asyncio.to_thread(app.run_sync, app.backend.ops.controls())


@asynccontextmanager
async def worker(site: Site, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    url = f"https://127.0.0.1:{site.port}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlane", "worker", "--app", TARGET, "--server", url),
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_worker_that_trusts_it(site: Site) -> None:
    task_id = await site.world.submit("on-loop", payload=b'{"n":7}')
    async with worker(site, SSL_CERT_FILE=str(site.shown.authority)) as process:
        while (await site.world.task(task_id)).status is not State.COMPLETED:
            assert process.returncode is None
            await asyncio.sleep(0.02)  # it happens in another process
        process.terminate()
        _, said = await process.communicate()
    assert process.returncode == 0, said.decode()


async def test_a_worker_that_does_not(site: Site) -> None:
    async with worker(site) as process:
        _, said = await process.communicate()
    assert process.returncode not in (0, None)
    assert UNTRUSTED in said.decode()
    assert "Traceback" not in said.decode()
