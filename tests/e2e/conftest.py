from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import World, opened

ENGINES = ("sqlite-file", "postgres-newest", "redis")
"""One version of each: what differs between versions is tested elsewhere, and this takes long."""


@pytest.fixture(params=ENGINES)
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    """An empty store of each engine, which other processes can open."""
    async with opened(request.param, servers, tmp_path) as world:
        yield world
