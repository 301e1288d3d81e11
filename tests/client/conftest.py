from collections.abc import AsyncIterator

import pytest

from fairlane import Fairlane


@pytest.fixture
async def app() -> AsyncIterator[Fairlane]:
    async with Fairlane("sqlite://") as app:
        yield app
