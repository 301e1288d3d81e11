"""A store of every kind: counters are read from the engine itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS, World, opened


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world
