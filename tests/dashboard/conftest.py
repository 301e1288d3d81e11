"""One browser a test process, one site a module, one page a test. See `kit`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.conftest import Servers
from tests.dashboard.kit import STORES, Dashboard, Site, served
from tests.fixtures.chromium import chromium

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A browser belongs to the loop that started it: all its tests share one.
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


@pytest.fixture(scope="module", params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of store behind the dashboard."""
    found: str = request.param
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(
    kind: str, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """A server and a worker that the tests of a module share."""
    async with served(kind, servers, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(site: Site, browser: Browser) -> AsyncIterator[Dashboard]:
    """A page on the module's site."""
    shown = Dashboard(site, browser)
    yield shown
    await shown.close()


@pytest_asyncio.fixture(loop_scope="session")
async def alone(
    kind: str, servers: Servers, browser: Browser, tmp_path: Path
) -> AsyncIterator[Dashboard]:
    """A page on a site that nobody shares."""
    async with served(kind, servers, tmp_path) as site:
        shown = Dashboard(site, browser)
        yield shown
        await shown.close()
