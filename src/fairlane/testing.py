"""A pytest plugin for applications that use Fairlane.

    def test_it(fairlane_app):           # an application in memory; the test moves its clock
        @fairlane_app.task
        async def greet(name: str) -> str: ...

        greet.options(delay_seconds=60).submit_sync("Ada")
        fairlane_app.advance(60)
        assert fairlane_app.work_sync() == 1

Within `with app.inline(): ...` your own application runs tasks where they are submitted.
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
