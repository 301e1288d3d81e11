from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS, REMOTE, World, opened


@pytest.fixture(params=[*KINDS, REMOTE])
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the engine itself is not asked of a server."""
    items[:] = [item for item in items if not (_is_remote(item) and _is_local(item))]


def _is_remote(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("store") == REMOTE


def _is_local(item: pytest.Item) -> bool:
    return item.get_closest_marker("local") is not None
