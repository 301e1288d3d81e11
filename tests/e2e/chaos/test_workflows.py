"""Workflows, while workers, servers and engines are killed and stand still: every one ends, every
task is given what its parents left, and none runs that should not."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlane import State
from fairlane.core.workflows import WorkflowState
from tests.e2e.chaos.arena import FULL, LEASE, Arena, until
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.history.dump import Dump
from tests.e2e.history.terms import Terms
from tests.fixtures.process import Server
from tests.fixtures.servers import postgres, redis
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World

RATE = 20.0 if FULL else 5.0
"""Workflows a second, of about six tasks each."""
KILLS, RUNS_BETWEEN = (40, 500) if FULL else (1, 20)
CRASHES = 10 if FULL else 2

pytestmark = pytest.mark.timeout(3_600 if FULL else 180)
over_http = pytest.mark.parametrize(
    "remote", [False, *([True] if FULL else [])], ids=lambda remote: "http" if remote else "direct"
)


async def over(arena: Arena) -> None:
    """All have ended, and there was something of everything."""
    await arena.drained()
    history, dump = await arena.judged(Terms(lease=LEASE))
    assert history.taken
    found = await states(arena)
    assert set(found.values()) >= {WorkflowState.COMPLETED, WorkflowState.FAILED}
    assert doomed(dump)


async def states(arena: Arena) -> dict[str, WorkflowState]:
    """How the workflows stand, each of which is all there and has ended."""
    found: dict[str, WorkflowState] = {}
    for workflow_id in arena.workflows.submitted:
        workflow = await arena.app.run(arena.app.backend.ops.workflow(workflow_id))
        assert workflow is not None
        assert workflow.complete
        assert workflow.state is not WorkflowState.RUNNING
        found[workflow_id] = workflow.state
    return found


def doomed(dump: Dump) -> int:
    return sum(
        task.status is State.CANCELLED and task.error is not None for task in dump.tasks.values()
    )


async def suspended(arena: Arena, worker: WorkerProcess) -> None:
    """Until it is declared dead: others have its tasks when it goes on."""

    async def is_dead() -> bool:
        return await worker.itself() is None

    worker.signal(signal.SIGSTOP)
    await until(is_dead, "the suspended worker is declared dead")
    worker.signal(signal.SIGCONT)
    await arena.ended(RUNS_BETWEEN)


async def test_workers_are_killed_and_suspended(arena: Arena) -> None:
    luck = random.Random(5)
    workers = [arena.begin() for _ in range(3)]
    await arena.ready(*workers)
    async with arena.workflows.load(RATE):
        for kill in range(KILLS):
            await arena.ended(RUNS_BETWEEN)
            await workers.pop(luck.randrange(len(workers))).kill()
            if kill % 4 == 0:
                await suspended(arena, workers[0])
            workers.append(await arena.worker())
    await over(arena)


@pytest.fixture
def server(world: World, tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(world.url, tmp_path, migrate=False) as server:
        yield server


async def test_the_server_is_killed(world: World, server: ServerProcess, tmp_path: Path) -> None:
    async with Arena(world.url, tmp_path, server.address) as arena:
        await arena.ready(arena.begin(), arena.begin())
        async with arena.workflows.load(RATE):
            for _ in range(CRASHES):
                await arena.ended(RUNS_BETWEEN)
                server.kill()
                await asyncio.to_thread(server.start)
                await arena.healed()
            await arena.ended(RUNS_BETWEEN)
        await over(arena)


@asynccontextmanager
async def at_work(url: str, folder: Path, *, remote: bool) -> AsyncIterator[Arena]:
    """Two workers and a load. `remote`: the workers know a server in place of the engine."""
    if remote:
        with ServerProcess(url, folder) as server:
            async with _at_work(Arena(url, folder, server.address)) as arena:
                yield arena
    else:
        async with _at_work(Arena(url, folder)) as arena:
            yield arena


@asynccontextmanager
async def _at_work(arena: Arena) -> AsyncIterator[Arena]:
    async with arena:
        await arena.ready(arena.begin(), arena.begin())
        async with arena.workflows.load(RATE):
            await arena.ended(RUNS_BETWEEN)
            yield arena
        await over(arena)


async def crash(arena: Arena, engine: Server) -> None:
    await asyncio.to_thread(engine.kill)
    await asyncio.to_thread(engine.start)
    await arena.healed()
    await arena.ended(RUNS_BETWEEN)


@over_http
async def test_redis_is_killed(remote: bool, tmp_path: Path) -> None:
    with redis(appendonly=True, settings={"appendfsync": "always"}) as engine:
        async with at_work(engine.url, tmp_path, remote=remote) as arena:
            for _ in range(CRASHES):
                await crash(arena, engine)


@over_http
async def test_postgres_is_killed(remote: bool, tmp_path: Path) -> None:
    with postgres(settings={}) as engine:  # its own defaults: what is committed is on disk
        async with at_work(engine.new_database(), tmp_path, remote=remote) as arena:
            for _ in range(CRASHES):
                await crash(arena, engine)
