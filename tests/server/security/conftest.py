"""Fixtures of the tests of who may do what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.server.security.kit import Guarded, guarded


@pytest.fixture
async def server(servers: Servers, tmp_path: Path) -> AsyncIterator[Guarded]:
    """A server that lets nobody in without a token, and tokens of every kind."""
    async with guarded(servers, tmp_path) as found:
        yield found
