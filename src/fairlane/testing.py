"""A pytest plugin for applications that use Fairlane.

    @pytest.fixture
    def store():
        with shop.app.in_memory() as store:     # your application, on a store in memory
            yield store

    def test_it(store: MemoryStore):
        shop.register("Ada")
        store.assert_submitted(shop.welcome, name="Ada")
        assert store.work_sync(within=3600) == 1

The fixture `fairlane_app` is an application without tasks, for tests that define their own. Within
`with app.inline(): ...` tasks run where they are submitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairlane.client.testing import MemoryApp


@pytest.fixture
def fairlane_app() -> Iterator[MemoryApp]:
    """An application in memory, whose clock the test moves and whose tasks the test runs."""
    from fairlane.client.testing import MemoryApp  # noqa: PLC0415 (pytest loads every plugin)

    app = MemoryApp()
    yield app
    app.close()
