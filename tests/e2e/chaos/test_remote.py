"""The server that workers know is killed: to those who know no database it costs no more than that.

(What happens to such workers themselves is in the other files: everything there is done over HTTP,
too.)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.chaos.arena import FULL, Arena
from tests.e2e.history.terms import Terms
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World

KILLS, RUNS_BETWEEN = (30, 300) if FULL else (1, 30)
RATE = 100.0 if FULL else 40.0
LEASE = 120.0
"""A server that is away for a moment, and a busy machine, must not pass for dead workers."""

pytestmark = pytest.mark.timeout(3_600 if FULL else 120)


@pytest.fixture
def server(world: World, tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(world.url, tmp_path, migrate=False) as server:
        yield server


@pytest.fixture
async def arena(world: World, server: ServerProcess, tmp_path: Path) -> AsyncIterator[Arena]:
    async with Arena(world.url, tmp_path, server.address) as arena:
        yield arena


async def test_a_server_that_is_killed_costs_no_attempt(
    arena: Arena, server: ServerProcess
) -> None:
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    async with arena.client.load(RATE, "on-loop", "on-thread"):
        for _ in range(KILLS):
            await arena.ended(RUNS_BETWEEN)
            # Runs that end while nobody is there to hear of it.
            await arena.client.submit_some(4, "on-loop", "on-thread", seconds=0.5)
            server.kill()
            await asyncio.to_thread(server.start)
            await arena.healed()
    await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    for task in dump.tasks.values():
        outcomes = Counter(each.outcome for each in task.attempts)
        assert outcomes.keys() <= {"completed", "failed", "released", "cancelled"}, task
