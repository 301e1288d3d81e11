from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.e2e.chaos.arena import Arena
from tests.fixtures.stores import opened

ENGINES = ("sqlite-file", "postgres-newest", "redis")
"""One version of each: what differs between versions is tested elsewhere, and this takes long."""


@pytest.fixture(params=ENGINES)
async def arena(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Arena]:
    """On an empty store of each engine."""
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(opened(request.param, servers, tmp_path))
        yield await stack.enter_async_context(Arena(world.url, tmp_path))
