from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS, opened


@pytest.fixture(params=KINDS)
async def url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[str]:
    """The URL of an empty store of every kind."""
    async with opened(request.param, servers, tmp_path) as world:
        yield world.url
