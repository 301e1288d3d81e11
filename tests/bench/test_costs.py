"""What is measured as switched off is off, and what is measured as on is on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from bench.peers.observed import Observed
from fairlane import Fairlane
from tests.conftest import Servers
from tests.fixtures.counters import tallies

TASKS = 1_000


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    match request.param:
        case "postgres":
            return servers.postgres("newest").new_database()
        case "redis":
            server = servers.redis("redis")
            server.flush()
            return server.url
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.mark.parametrize("choice", ["off", "books"])
async def test_whether_the_books_are_kept(url: str, choice: Literal["off", "books"]) -> None:
    observed = Observed(choice, url)
    try:
        await observed.open()
        burst = await observed.drained(TASKS)
    finally:
        await observed.close()
    assert burst.rate > 0
    assert burst.worker > 0
    async with Fairlane(url) as app:
        ops = app.backend.ops
        told = {event.verb for event in (await app.run(ops.events(None, 10 * TASKS))).events}
        counted = {(tally.key.source, tally.key.target) for tally in await app.run(tallies(ops))}
    assert ("complete" in told) == (choice == "books")
    assert ("claim" in told) == (choice == "books")
    assert len(counted) == (3 if choice == "books" else 1), "all submissions are counted"
