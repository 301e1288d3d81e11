"""Who fires a schedule, when, and what happens when the store does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fairlane import scheduler
from fairlane.core import limits, recurrence, schedules
from fairlane.core.errors import InvalidSchedule, StoreUnavailable
from fairlane.core.recurrence import Cron, every
from fairlane.core.schedules import NewSchedule, new_schedule
from fairlane.core.scheduling import Fired
from fairlane.core.submission import new_task
from fairlane.core.zones import zone_of
from fairlane.maintenance import Maintenance
from fairlane.scheduler import Scheduler
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE

FOREVER = float("inf")
SECOND = 1_000_000


async def declared(world: World, schedule_id: str = "hourly", lead: float = 30) -> NewSchedule:
    """A schedule that fires in so many seconds, and then every hour."""
    now = (await world.run(world.ops.facts())).now
    rule = every(3600, (now / SECOND + lead) % 3600)
    return new_schedule(schedule_id, rule, new_task("work"), overlap="allow")


async def put(world: World, *new: NewSchedule) -> None:
    await world.run(world.ops.put_schedules(new))


async def fired(world: World, schedule_id: str = "hourly") -> int:
    (schedule,) = await world.run(world.ops.schedules([schedule_id]))
    assert schedule is not None
    return schedule.standing.fired


def leader(world: World) -> Scheduler:
    found = Scheduler(world.backend, 2.5, world.monotonic)
    found.lead(FOREVER)
    return found


class Replies:
    """Stands between a scheduler and its store: records what is asked, and answers for it."""

    def __init__(self, world: World, **answers: Callable[[], Awaitable[Any]]) -> None:
        self.asked: list[str] = []
        self._answers = answers
        self._run = world.backend.run
        world.backend.run = self.run

    async def run(self, op: Any) -> Any:
        self.asked.append(op.name)
        answer = self._answers.get(op.name)
        return await (self._run(op) if answer is None else answer())


async def test_the_leader_fires_and_the_others_when_that_is_late(world: World) -> None:
    await put(world, await declared(world))
    first, second = leader(world), Scheduler(world.backend, 2.5, world.monotonic)
    assert await first.step() == scheduler.LOOK_SECONDS
    await world.advance(31)
    wait = await second.step()
    assert 0 < wait <= scheduler.LATE_SECONDS
    assert await fired(world) == 0
    await first.step()
    assert await fired(world) == 1
    await world.advance(3600 + scheduler.LATE_SECONDS)
    await second.step()
    assert await fired(world) == 2
    await first.step()
    assert await fired(world) == 2


async def test_one_at_a_time_helps_out(world: World) -> None:
    first, second = (Scheduler(world.backend, 2.5, world.monotonic) for _ in range(2))
    await put(world, await declared(world, "a", 30), await declared(world, "b", 40))
    await world.advance(30 + scheduler.LATE_SECONDS)
    await first.step()
    await world.advance(10)
    assert await world.run(world.ops.elect(scheduler.ROLE, "another", scheduler.LATE_SECONDS))
    assert await second.step() == scheduler.SPREAD_SECONDS
    assert (await fired(world, "a"), await fired(world, "b")) == (1, 0)
    await world.advance(scheduler.LATE_SECONDS)  # whoever that was fires nothing
    await second.step()
    assert (await fired(world, "a"), await fired(world, "b")) == (1, 1)


async def test_both_sleep_until_a_tick_that_is_near(memory: World) -> None:
    async def soon() -> float:
        return 0.25

    Replies(memory, due_schedules=soon)
    assert await leader(memory).step() == 0.25
    other = Scheduler(memory.backend, 10.0)
    late = 0.25 + scheduler.LATE_SECONDS
    assert late <= await other.step() <= late + scheduler.SPREAD_SECONDS


async def test_who_no_longer_leads_leaves_ticks_to_others(memory: World) -> None:
    await put(memory, await declared(memory))
    former = Scheduler(memory.backend, 2.5, memory.monotonic)
    former.lead(memory.monotonic() + 7.5)
    await memory.advance(31)  # it was suspended, and another leads by now
    await former.step()
    assert await fired(memory) == 0


async def test_a_leader_begins_at_once(memory: World) -> None:
    await put(memory, await declared(memory, lead=0.01))
    new = Scheduler(memory.backend, 3_600.0)
    looked = asyncio.Event()

    async def far() -> None:
        looked.set()

    replies = Replies(memory, due_schedules=far)
    running = asyncio.create_task(new.run())
    async with asyncio.timeout(PATIENCE):
        await looked.wait()
        del replies._answers["due_schedules"]
        new.lead(FOREVER)
        while not await fired(memory):  # noqa: ASYNC110 (a store's state)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_maintenance_fires_schedules(world: World) -> None:
    await put(world, await declared(world))
    await world.advance(31)
    keeping = asyncio.create_task(Maintenance(world.backend, "one", pace=0.5).run())
    async with asyncio.timeout(PATIENCE):
        while not await fired(world):  # noqa: ASYNC110 (a store's state)
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert await fired(world) == 1


async def test_a_call_that_hangs_does_not_stop_ticks(
    memory: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scheduler, "CALL_SECONDS", 0.05)
    await put(memory, await declared(memory))
    await memory.advance(31)
    again = asyncio.Event()
    fire = memory.backend.run

    async def stalled() -> Any:
        if replies.asked.count("fire_due") == 1:
            await asyncio.Event().wait()
        answer = await fire(memory.ops.fire_due())
        again.set()
        return answer

    replies = Replies(memory, fire_due=stalled)
    running = asyncio.create_task(leader(memory).run())
    async with asyncio.timeout(PATIENCE):
        await again.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await fired(memory) == 1
    assert "No answer from the store within 0.05 s" in caplog.text


async def test_trouble_does_not_end_it(memory: World, caplog: pytest.LogCaptureFixture) -> None:
    troubles: list[Exception] = [StoreUnavailable("away"), ZeroDivisionError("a bug")]
    looked = asyncio.Event()

    async def troubled() -> None:
        if troubles:
            raise troubles.pop()
        looked.set()

    Replies(memory, due_schedules=troubled)
    running = asyncio.create_task(leader(memory).run())
    async with asyncio.timeout(PATIENCE):
        await looked.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert "Schedules wait, and may be late: away" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_what_cannot_be_fired_here_is_said(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def late() -> float:
        return -10.0

    async def unknown() -> Fired:
        return Fired([], unknown={"nightly": "No such zone."})

    Replies(memory, due_schedules=late, fire_due=unknown)
    first = leader(memory)
    for _ in range(2):
        assert await first.step() == scheduler.AGAIN_SECONDS
    assert caplog.text.count("Schedule nightly is not fired here: No such zone.") == 1


def knowing(monkeypatch: pytest.MonkeyPatch, zone: str | None) -> None:
    """From now on processes know the zone that is asked for as this one, or know none."""

    def found(_: str) -> ZoneInfo:
        if zone is None:
            raise InvalidSchedule("There is no such time zone.")
        return zone_of(zone)

    monkeypatch.setattr(recurrence, "zone_of", found)
    monkeypatch.setattr(schedules, "zone_of", found)
    for cached in (recurrence.next_two, recurrence.newest_tick, recurrence.count_ticks):
        cached.cache_clear()


async def test_another_process_fires_what_the_leader_cannot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time zone that only one of them knows: it is two seconds late, and holds up no other."""
    first, second = leader(world), Scheduler(world.backend, 2.5, world.monotonic)
    knowing(monkeypatch, "UTC")
    rule: Any = Cron("* * * * *", "Mars/Olympus")
    await put(world, new_schedule("new", rule, new_task("work")), await declared(world, "old", 40))
    await world.advance(61)
    knowing(monkeypatch, None)
    for wait in (0.0, scheduler.LOOK_SECONDS, scheduler.LOOK_SECONDS):
        assert await first.step() == wait
    assert (await fired(world, "old"), await fired(world, "new")) == (1, 0)
    await world.advance(scheduler.LATE_SECONDS)
    assert await first.step() == scheduler.LOOK_SECONDS
    knowing(monkeypatch, "UTC")
    await second.step()
    assert await fired(world, "new") == 1


async def test_a_process_tries_again_after_a_minute(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowing(monkeypatch, "UTC")
    rule: Any = Cron("* * * * *", "Mars/Olympus")
    await put(memory, *(new_schedule(f"s{n}", rule, new_task("work")) for n in range(3)))
    await memory.advance(61)
    first = leader(memory)
    monkeypatch.setattr(limits, "SCHEDULE_PAGE", 2)  # as many as a process remembers
    knowing(monkeypatch, None)
    while await first.step() < scheduler.LOOK_SECONDS:
        pass
    knowing(monkeypatch, "UTC")
    assert await first.step() == scheduler.LOOK_SECONDS
    await memory.advance(scheduler.LEFT_SECONDS)
    await first.step()
    assert [await fired(memory, f"s{n}") for n in range(3)] == [1, 1, 1]


async def test_what_others_fire_first_keeps_nobody_busy(memory: World) -> None:
    async def late() -> float:
        return -10.0

    async def nothing() -> Fired:
        return Fired([])

    Replies(memory, due_schedules=late, fire_due=nothing)
    assert await leader(memory).step() == scheduler.AGAIN_SECONDS


async def test_a_clock_that_is_set_fires_nothing_twice(world: World) -> None:
    await put(world, await declared(world))
    first = leader(world)
    await world.advance(31)
    await first.step()
    await world.set_clock(-3600)
    assert await first.step() == scheduler.LOOK_SECONDS
    await world.set_clock(2 * 3600)
    await first.step()
    assert await first.step() == scheduler.LOOK_SECONDS
    assert await fired(world) == 2


async def test_sweeps_begin_with_a_term_and_ticks_go_first(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCHEDULE_PAGE", 2)
    for number in range(5):
        await put(memory, await declared(memory, f"s{number}", 60 + 10 * number))
    replies = Replies(memory)
    first = Scheduler(memory.backend, 2.5, memory.monotonic)
    await first.step()
    assert "sweep_schedules" not in replies.asked
    first.lead(memory.monotonic() + 100)
    await first.step()
    await memory.advance(61)
    while not await first.step():
        pass
    sweeping = [name for name in replies.asked if name in {"fire_due", "sweep_schedules"}]
    assert sweeping == ["sweep_schedules", "fire_due", *["sweep_schedules"] * 3]
    replies.asked.clear()
    first.lead(memory.monotonic() + 100)  # the next term begins before the last one is over
    await first.step()
    assert "sweep_schedules" not in replies.asked
    await memory.advance(101)
    first.lead(memory.monotonic() + 10_000)
    while not await first.step():
        pass
    assert "sweep_schedules" in replies.asked
    await memory.advance(2 * scheduler.SWEEP_SECONDS)
    replies.asked.clear()
    while "sweep_schedules" not in replies.asked:
        await first.step()
