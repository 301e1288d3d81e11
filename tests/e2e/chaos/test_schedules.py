"""Every tick is fired exactly once, and soon, whatever happens to those who fire."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlane import State
from fairlane.core.documents import Documents
from fairlane.core.errors import StoreBusy
from fairlane.core.filters import new_filter
from fairlane.core.flow import Flow, reads
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import Recurrence, cron, every, ticks_between
from fairlane.core.schedules import Outcome, Schedule, new_schedule
from fairlane.core.submission import new_task
from fairlane.core.tick_counts import LAG_BOUNDS
from fairlane.maintenance import ROLE
from fairlane.scheduler import Scheduler
from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.conftest import ENGINES
from tests.e2e.history.terms import Terms
from tests.fixtures.servers import postgres, redis
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World

SECONDS = 600.0 if FULL else 60.0
LIFE_SECONDS = 3.0
LEASE = 30.0
"""The leader's term is a quarter of it: long enough to see that others do not wait for its end."""
AWAY_SECONDS = 3.0
LATEST = 5.0
"""Two seconds are promised, and the machine is busy."""

RULES: dict[str, Recurrence] = {
    "every-second": every(1, 0.25),
    "every-third": every(3),
    "every-seventh": every(7, 2),
    "every-minute": cron("* * * * *", "Europe/Berlin"),
}

on_engines = pytest.mark.parametrize("arena", ENGINES, indirect=True)


async def declare(arena: Arena) -> list[Schedule]:
    schedules = [
        new_schedule(
            name,
            rule,
            new_task("on-tick", {}),
            missed="all",
            most=1_000,
            overlap="allow",
        )
        for name, rule in RULES.items()
    ]
    return await arena.client.schedule(schedules)


async def now(arena: Arena) -> float:
    return (await arena.app.run(arena.app.backend.ops.facts())).now / MICROSECONDS


async def passed(arena: Arena, time: float) -> None:
    """Until the store's clock shows this time."""

    async def over() -> bool:
        return await now(arena) >= time

    await until(over, "time goes by", SECONDS)


async def fired(arena: Arena) -> int:
    counts = await arena.app.run(arena.app.backend.ops.tick_counts())
    return counts.outcomes.get(Outcome.FIRED, 0)


async def more_fired(arena: Arena, count: int) -> None:
    enough = await fired(arena) + count

    async def are() -> bool:
        return await fired(arena) >= enough

    await until(are, f"{count} more ticks are fired")


async def check_ticks(arena: Arena, before: Sequence[Schedule]) -> None:
    """Let what is due be fired, and end it all; then look at every tick."""
    ops = arena.app.backend.ops

    async def nothing_is_due() -> bool:
        due_in = await arena.app.run(ops.due_schedules())
        return due_in is not None and due_in > 0

    await until(nothing_is_due, "nothing is due")
    for schedule in before:
        await arena.app.run(ops.pause_schedule(schedule.schedule_id))
    await arena.drained()
    after = await arena.app.run(ops.schedules([each.schedule_id for each in before]))
    total = 0
    for old, new in zip(before, after, strict=True):
        assert new is not None
        last = new.standing.last_at or 0
        expected = ticks_between(old.rule, old.standing.since + 1, last + 1, 10_000)
        assert await results(arena, old.schedule_id) == expected
        assert (new.standing.fired, new.standing.missed) == (len(expected), 0)
        total += len(expected)
    counts = await arena.app.run(ops.tick_counts())
    assert counts.outcomes == {Outcome.FIRED: total}
    await arena.judged(Terms(lease=LEASE))


async def results(arena: Arena, schedule_id: str) -> list[int]:
    """The ticks of a schedule's tasks, all of which have completed."""
    ticks: list[int] = []
    cursor: str | None = None
    while True:
        page = await arena.app.run(
            arena.app.backend.ops.page(new_filter(schedule_id=schedule_id), 500, cursor)
        )
        for task in page.tasks:
            assert task.status is State.COMPLETED
            ticks.append(json.loads(task.result or b""))
        cursor = page.next_cursor
        if cursor is None:
            return sorted(ticks)


async def latest(arena: Arena) -> float:
    """The upper bound of how late any tick was fired."""
    counts = await arena.app.run(arena.app.backend.ops.tick_counts())
    bounds = (*LAG_BOUNDS, float("inf"))
    return max(bound for bound, count in zip(bounds, counts.lags, strict=True) if count)


@reads
def holder(self: Documents) -> Flow[str]:
    _, (held,) = yield from self.read_documents("role", [ROLE])
    return "" if held is None else held.value.decode()


async def leader_of(arena: Arena, workers: Sequence[WorkerProcess]) -> WorkerProcess:
    """The one that does the maintenance now."""
    ops: Any = arena.app.backend.ops
    found: list[WorkerProcess] = []

    async def is_there() -> bool:
        name = await arena.app.run(holder(ops))
        for worker in workers:
            itself = await worker.itself()
            if itself is not None and itself.worker_id == name:
                found.append(worker)
        return bool(found)

    await until(is_there, "one of the workers leads")
    return found[0]


@on_engines
@pytest.mark.timeout(3_600 if FULL else 240)
async def test_restarts_every_three_seconds(arena: Arena) -> None:
    """Every other time in good order. What nobody fired meanwhile is fired by the next ones."""
    schedules = await declare(arena)
    end = await now(arena) + SECONDS
    turn = 0
    while (began := await now(arena)) < end:
        workers = [arena.begin(lease=LEASE) for _ in range(2)]
        await arena.ready(*workers)
        await more_fired(arena, 1)
        await passed(arena, began + LIFE_SECONDS)
        turn += 1
        if turn % 2:
            await asyncio.gather(*(worker.kill() for worker in workers))
        else:
            await asyncio.gather(*(worker.stop() for worker in workers))
    last = await arena.worker(lease=LEASE)
    await check_ticks(arena, schedules)
    await last.stop()


@on_engines
@pytest.mark.timeout(240)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_others_fire_when_the_leader_cannot(
    arena: Arena, number: signal.Signals, tmp_path: Path
) -> None:
    """Long before the leader's term is over."""
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    leader = await leader_of(arena, workers)
    schedules = await declare(arena)
    with ServerProcess(arena.app.url, tmp_path, migrate=False):
        await more_fired(arena, 5)
        await strike(arena, leader, number)
        await more_fired(arena, 10)
        assert await latest(arena) <= LATEST
        if number is signal.SIGSTOP:
            leader.signal(signal.SIGCONT)
        await more_fired(arena, 5)
        await check_ticks(arena, schedules)


async def strike(arena: Arena, leader: WorkerProcess, number: signal.Signals) -> None:
    """Send the leader a signal, but do not stop it in the middle of a write to a file: then nobody
    writes until it is killed, which test_hogs.py is about."""
    ops = arena.app.backend.ops
    while True:
        leader.signal(number)
        try:
            await arena.app.run(ops.sample().within(1.0))
        except StoreBusy:
            leader.signal(signal.SIGCONT)
        else:
            return


async def test_eight_schedulers_at_once(world: World) -> None:
    """1,000 ticks, 1,000 tasks."""
    ops = world.ops
    facts = await world.run(ops.facts())
    rule = every(3_600, (facts.now // MICROSECONDS + 60) % 3_600)
    for start in range(0, 250, 50):
        batch = [
            new_schedule(f"s{n}", rule, new_task("work", {"n": n}), missed="all", overlap="allow")
            for n in range(start, start + 50)
        ]
        await world.run(ops.put_schedules(batch))
    await world.advance(3 * 3_600 + 61)
    schedulers = [Scheduler(backend, 0.1) for backend in world.processes(8)]
    for each in schedulers:
        each.lead(float("inf"))
    running = [asyncio.create_task(each.run()) for each in schedulers]

    async def nothing_is_due() -> bool:
        due_in = await world.run(ops.due_schedules())
        return due_in is not None and due_in > 0

    await until(nothing_is_due, "nothing is due")
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert await world.census() == {State.QUEUED: 1_000}
    assert (await world.run(ops.tick_counts())).outcomes == {Outcome.FIRED: 1_000}


@asynccontextmanager
async def at_work(url: str, folder: Path) -> AsyncIterator[None]:
    """Two workers that fire schedules, and a look at all ticks at the end."""
    async with Arena(url, folder) as arena:
        await arena.ready(arena.begin(lease=LEASE), arena.begin(lease=LEASE))
        schedules = await declare(arena)
        await more_fired(arena, 3)
        yield
        await more_fired(arena, 5)
        await check_ticks(arena, schedules)


async def away(end: Callable[[], None], start: Callable[[], None]) -> None:
    """Away for longer than it takes until ticks are due."""
    await asyncio.to_thread(end)
    await asyncio.sleep(AWAY_SECONDS)
    await asyncio.to_thread(start)


@pytest.mark.timeout(240)
async def test_postgres_is_away_across_ticks(tmp_path: Path) -> None:
    with postgres(settings={}) as server:
        async with at_work(server.new_database(), tmp_path):
            await away(server.kill, server.start)


@pytest.mark.timeout(240)
async def test_redis_is_away_across_ticks(tmp_path: Path) -> None:
    with redis(appendonly=True, settings={"appendfsync": "always"}) as server:
        async with at_work(server.url, tmp_path):
            await away(server.kill, server.start)


@pytest.mark.timeout(240)
async def test_a_file_is_locked_across_ticks(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with at_work(f"sqlite:///{path}", tmp_path):
        lock = os.open(f"{path}.lock", os.O_RDWR)
        await away(partial(fcntl.flock, lock, fcntl.LOCK_EX), partial(os.close, lock))
