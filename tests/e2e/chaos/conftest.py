from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.e2e.chaos.arena import FULL, Arena
from tests.e2e.conftest import ENGINES
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import opened

OVER_HTTP = "-over-http"
REMOTE = tuple(engine + OVER_HTTP for engine in (ENGINES if FULL else ["redis"]))
"""Workers that know a server in place of the engine."""


@pytest.fixture(params=[*ENGINES, *REMOTE])
async def arena(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Arena]:
    """On an empty store of each engine."""
    engine = request.param.removesuffix(OVER_HTTP)
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(opened(engine, servers, tmp_path))
        address = None
        if engine != request.param:
            server = ServerProcess(world.url, tmp_path, migrate=False)
            address = stack.enter_context(server).address
        yield await stack.enter_async_context(Arena(world.url, tmp_path, address))
