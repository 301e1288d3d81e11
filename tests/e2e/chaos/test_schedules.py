"""Every tick is fired exactly once, and soon, whatever happens to those who fire."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
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
from fairlane.core.schedules import Missed, Outcome, Schedule, new_schedule
from fairlane.core.submission import new_task
from fairlane.core.tick_counts import LAG_BOUNDS
from fairlane.maintenance import ROLE
from fairlane.scheduler import Scheduler
from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.chaos.test_clocks import clocked
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


async def declare(
    arena: Arena,
    policies: Iterable[Missed] = (Missed.ALL,),
    rules: Mapping[str, Recurrence] = RULES,
) -> list[Schedule]:
    """A schedule for each policy and rule."""
    schedules = [
        new_schedule(
            f"{name}-{missed}",
            rule,
            new_task("on-tick", {}),
            missed=missed,
            most=1_000,
            overlap="allow",
        )
        for missed in policies
        for name, rule in rules.items()
    ]
    return await arena.client.schedule(schedules)


async def store_time(arena: Arena) -> int:
    return (await arena.app.run(arena.app.backend.ops.facts())).now


async def now(arena: Arena) -> float:
    return await store_time(arena) / MICROSECONDS


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


async def nothing_is_due(arena: Arena) -> bool:
    due_in = await arena.app.run(arena.app.backend.ops.due_schedules())
    return due_in is not None and due_in > 0


async def check_ticks(arena: Arena, before: Sequence[Schedule]) -> None:
    """Let what is due be fired, and end it all; then look at every tick."""
    ops = arena.app.backend.ops
    await until(partial(nothing_is_due, arena), "nothing is due")
    for schedule in before:
        await arena.app.run(ops.pause_schedule(schedule.schedule_id))
    await arena.drained()
    after = await arena.app.run(ops.schedules([each.schedule_id for each in before]))
    outcomes: Counter[Outcome] = Counter()
    for old, new in zip(before, after, strict=True):
        assert new is not None
        outcomes += await outcomes_of(arena, old, new)
    counts = await arena.app.run(ops.tick_counts())
    assert counts.outcomes == outcomes
    await arena.judged(Terms(lease=LEASE))


async def outcomes_of(arena: Arena, old: Schedule, new: Schedule) -> Counter[Outcome]:
    """How many ticks were fired and missed. Each is one of both, and all are fired if the schedule
    wants that."""
    last = new.standing.last_at or 0
    expected = ticks_between(old.rule, old.standing.since + 1, last + 1, 10_000)
    fired, missed = await results(arena, old.schedule_id), new.standing.missed
    if old.policy.missed is Missed.ALL:
        assert (fired, missed) == (expected, 0)
    assert len(set(fired)) == len(fired) == new.standing.fired
    assert set(fired) <= set(expected)
    assert len(fired) + missed == len(expected)
    return Counter({Outcome.FIRED: len(fired), Outcome.MISSED: missed})


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
    """Long before the leader's term is over. What is two seconds late is fired whatever becomes of
    missed ticks: the newest one, or all of them."""
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    leader = await leader_of(arena, workers)
    schedules = await declare(arena)
    schedules += await declare(arena, [Missed.SKIP, Missed.ONCE], {"often": every(2, 0.5)})
    with ServerProcess(arena.app.url, tmp_path, migrate=False):
        await more_fired(arena, 5)
        await strike(arena, leader, number)
        await more_fired(arena, 10)
        assert await latest(arena) <= LATEST
        if number is signal.SIGSTOP:
            leader.signal(signal.SIGCONT)
        await more_fired(arena, 5)
        await check_ticks(arena, schedules)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.timeout(240)
async def test_all_are_suspended_for_ten_minutes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the engine's clock, which is set forward meanwhile. Then each policy does what it says."""
    async with clocked(engine, tmp_path, monkeypatch) as (arena, clock):
        ops = arena.app.backend.ops
        workers = [arena.begin(lease=LEASE) for _ in range(2)]
        await arena.ready(*workers)
        # Three ticks, of which the newest is 90 s late in the end: nobody takes that for on time.
        rule = every(240, (await now(arena) + 30) % 240)
        schedules = await declare(arena, Missed, {"often": rule})
        for worker in workers:
            await strike(arena, worker, signal.SIGSTOP)
        clock.set(600)
        for worker in workers:
            worker.signal(signal.SIGCONT)
        await until(partial(nothing_is_due, arena), "nothing is due")
        await arena.drained()
        ticks = ticks_between(rule, schedules[0].standing.since, await store_time(arena), 10)
        fired = {each.schedule_id: await results(arena, each.schedule_id) for each in schedules}
        assert len(ticks) == 3
        assert fired == {"often-skip": [], "often-once": ticks[-1:], "often-all": ticks}
        counts = await arena.app.run(ops.tick_counts())
        assert counts.outcomes == {Outcome.MISSED: 3 + 2, Outcome.FIRED: 1 + 3}


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
            await arena.app.run(ops.sample())  # once its write is over
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
