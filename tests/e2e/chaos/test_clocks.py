"""C11: the engine's clock is set, forward and back, while everybody works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from fairlane import State
from fairlane.engines.sqlite.context import Context
from tests.e2e.chaos.arena import FULL, LEASE, PATIENCE, Arena, until
from tests.e2e.conftest import ENGINES
from tests.e2e.history.terms import Terms
from tests.fixtures.clock_shim import ClockShim
from tests.fixtures.servers import PostgresServer, RedisServer, postgres, redis

HOURS = 7200.0
STEPS = [HOURS, -HOURS, 5.0, -5.0, -HOURS, HOURS] * 4 if FULL else [HOURS, -HOURS, 5.0, -5.0]
RATE = 100.0 if FULL else 30.0
RUNS_BETWEEN = 1_000 if FULL else 20
HELD = 4
LONG_LEASE = 6.0
"""Longer than a busy machine may keep a heartbeat waiting, as no lease is to be lost."""
BY_THE_CLOCK = ("I7",)
"""What compares times of the store with those of clients and handlers. (Of such invariants, I10 and
I13 are checked only where `Terms` asks for it, I18 only where tasks have parents.)"""


@asynccontextmanager
async def clocked(
    engine: str, folder: Path, patch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Arena, ClockShim]]:
    """An engine whose clock can be set: a server's own, or that of all who open the file."""
    async with AsyncExitStack() as stack:
        if engine == "sqlite-file":
            clock = stack.enter_context(ClockShim(folder))
            read = Context.clock
            patch.setattr(Context, "clock", lambda self: read(self) + clock.nanoseconds // 1_000)
            url = f"sqlite:///{folder / 'tasks.db'}"
            arena = Arena(url, folder, environment=clock.environment)
        else:
            server: PostgresServer | RedisServer
            server = redis() if engine == "redis" else postgres()
            clock = stack.enter_context(ClockShim(server.folder))
            server.environment = clock.environment
            stack.enter_context(server)
            url = server.new_database() if isinstance(server, PostgresServer) else server.url
            arena = Arena(url, folder)
        yield await stack.enter_async_context(arena), clock


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.timeout(3_600 if FULL else 180)
async def test_the_clock_is_set(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing ends that runs, nothing stands still that waits, the dead are found."""
    async with clocked(engine, tmp_path, monkeypatch) as (arena, clock):
        ops = arena.app.backend.ops
        await arena.app.run(ops.limit("in-process", rate=20.0))
        holder = await arena.worker(concurrency=HELD, lease=LONG_LEASE)
        held = await arena.client.submit_some(HELD, "on-loop", gate=str(arena.folder / "gate"))
        await arena.begun(HELD)
        await arena.ready(arena.begin(lease=LONG_LEASE), arena.begin(lease=LONG_LEASE))
        for step in STEPS:
            async with arena.client.load(RATE, "on-loop", "on-thread", "in-process"):
                await arena.ended(RUNS_BETWEEN)
                clock.set(step)
                await asyncio.sleep(LEASE)  # rounds of maintenance, which would end everything
                await arena.ended(RUNS_BETWEEN)
            await all_but(arena, held)
        arena.open("gate-1")
        await arena.drained()
        assert await holder.itself() is not None, "it was never declared dead"
        history, dump = await arena.judged(Terms(lease=LONG_LEASE), without=BY_THE_CLOCK)
        for task_id, runs in history.runs.items():
            outcomes = {each.outcome for each in dump.tasks[task_id].attempts}
            assert outcomes <= {"completed", "failed", "cancelled"}, (task_id, runs)
        for task_id in held:
            task = dump.tasks[task_id]
            assert (task.status, task.attempt) == (State.COMPLETED, 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("step", [HOURS, -HOURS])
@pytest.mark.timeout(180)
async def test_who_dies_just_before_the_clock_is_set_is_found(
    engine: str, step: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clocked(engine, tmp_path, monkeypatch) as (arena, clock):
        dying = await arena.worker(concurrency=HELD, lease=LEASE)
        gate = str(arena.folder / "gate")
        ids = await arena.client.submit_some(HELD, "on-loop", gate=gate, seconds=1.5)
        await arena.begun(HELD)
        await arena.ready(arena.begin(lease=LEASE))
        await dying.kill()
        clock.set(step)
        await arena.begun(2 * HELD)
        arena.open("gate-2")
        await arena.drained()
        # The dead are found one lease after the step.
        await arena.judged(Terms(lease=2 * LEASE), without=BY_THE_CLOCK)
        for task_id in ids:
            task = await arena.app.get(task_id)
            assert task is not None
            assert (task.status, task.attempt) == (State.COMPLETED, 2)


async def all_but(arena: Arena, held: list[str]) -> None:
    """Until everything has ended but these."""

    async def only_these() -> bool:
        stats = await arena.app.stats()
        left = {state: count for state, count in stats.by_status.items() if count}
        live = (State.SCHEDULED, State.QUEUED, State.RETRYING, State.EXECUTING)
        return sum(left.get(state, 0) for state in live) == len(held)

    await until(only_these, "everything else has ended", PATIENCE)
