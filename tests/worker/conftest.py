from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlane import Fairlane
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, World, opened
from tests.worker.kit import application


@pytest.fixture(params=KINDS)
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    """A store of every kind, for what has to hold on all of them."""
    async with opened(request.param, servers, tmp_path) as world:
        yield world


@pytest.fixture
def app(world: World) -> Fairlane:
    return application(world)


@pytest.fixture
async def memory(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    """The quickest store, for what the worker does by itself."""
    async with opened("sqlite-memory", servers, tmp_path) as world:
        yield world


@pytest.fixture
def quick(memory: World) -> Fairlane:
    return application(memory)
