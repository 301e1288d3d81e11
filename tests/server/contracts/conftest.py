"""The documents are held to on one store of each engine; what differs between versions of an engine
is tested elsewhere."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.contracts.seat import Seat
from tests.server.kit import Api, serving

ENGINES = ("sqlite-file", "postgres-newest", "redis")


@pytest.fixture(params=ENGINES)
async def served(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Api]:
    """A server over an empty store of each engine."""
    async with opened(request.param, servers, tmp_path) as world, serving(world) as api:
        yield api


@pytest.fixture
async def seat(served: Api) -> Seat:
    """A worker that can do what 000's examples ask for."""
    return await Seat.taken(served, "gpu")
