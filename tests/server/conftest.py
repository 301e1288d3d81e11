"""Fixtures of the tests of the server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS, opened
from tests.server.kit import Api, serving


@pytest.fixture(params=KINDS)
async def served(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Api]:
    """A server over an empty store, of every kind."""
    async with opened(request.param, servers, tmp_path) as world, serving(world) as api:
        yield api


@pytest.fixture
async def api(servers: Servers, tmp_path: Path) -> AsyncIterator[Api]:
    """A server over a store in memory: for what no engine has a say in."""
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        yield api
