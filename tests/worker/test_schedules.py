"""Workers declare the schedules of their application's code, and run the tasks of their ticks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

import pytest

from fairlane import Context, Fairlane, Schedule
from fairlane.core.errors import AccessDenied, StoreUnavailable
from fairlane.core.flow import Mode, Op
from fairlane.worker.schedules import ScheduleKeeper
from tests.conftest import Servers
from tests.fixtures.stores import REMOTE, World, opened
from tests.worker import isolated
from tests.worker.kit import PATIENCE, application, ended, working

TICK = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
"""In the night in which the clock is set back."""


def define(app: Fairlane, **options: Any) -> None:
    app.name = "shop"

    @app.cron("30 2 * * *", tz="Europe/Berlin", **options)
    @app.task
    async def nightly(ctx: Context) -> list[str]:
        tick = ctx.scheduled_for
        return [] if tick is None else [str(tick), str(tick.tzinfo)]


async def stored(app: Fairlane) -> Schedule:
    """The schedule as soon as somebody has declared it."""
    async with asyncio.timeout(PATIENCE):
        while (found := await app.schedules.get("nightly")) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def declared(app: Fairlane) -> Schedule:
    """The schedule after a worker has declared it: before it runs anything."""
    await (await app.tasks["nightly"].submit()).result(PATIENCE)
    return await stored(app)


async def test_a_worker_declares_them_and_handlers_know_the_tick(world: World) -> None:
    app = application(world)
    define(app)
    async with working(app):
        schedule = await stored(app)
        assert (schedule.owner, schedule.source) == ("shop", "code")
        assert schedule.next_at is not None
        assert str(schedule.next_at.tzinfo) == "Europe/Berlin"
        handle = await app.schedules.run("nightly", at=TICK)
        assert await handle.result(PATIENCE) == ["2026-10-25 02:30:00+02:00", "Europe/Berlin"]
        await world.advance(25 * 3600)  # a day may have 25 hours
        while (await world.run(world.ops.fire_due())).more:
            pass
        found = await app.schedules.get("nightly")
        assert found is not None
        assert found.last_at is not None
        assert found.last_task_id is not None
        task = await ended(app, found.last_task_id)
        assert task.result == [str(found.last_at), "Europe/Berlin"]
        assert (await (await app.tasks["nightly"].submit()).result(PATIENCE)) == []


@pytest.fixture
async def remote(servers: Servers, tmp_path: Path) -> AsyncIterator[Fairlane]:
    """An application whose store is a server."""
    async with opened(REMOTE, servers, tmp_path) as world:
        yield application(world)


async def test_through_a_server_too(remote: Fairlane) -> None:
    define(remote)
    async with working(remote):
        schedule = await declared(remote)
        assert (schedule.owner, schedule.tz) == ("shop", "Europe/Berlin")
        handle = await remote.schedules.run("nightly", at=TICK)
        assert await handle.result(PATIENCE) == ["2026-10-25 02:30:00+02:00", "Europe/Berlin"]
        until = TICK + timedelta(days=3)
        handles = await remote.schedules.backfill("nightly", since=TICK, until=until)
        assert len(handles) == len(schedule.ticks(TICK, until)) == 3
        paused = await remote.schedules.pause("nightly", note="migration")
        assert (paused.state, paused.next_at) == ("paused", None)
    again, keeper = Fairlane(remote.url), ScheduleKeeper(remote)
    again._connection.adopt(remote.backend)
    define(again, note="newer")
    await keeper.declare(remote.run)
    await ScheduleKeeper(again).declare(again.run)
    await keeper.declare(remote.run)  # the older one takes nothing back
    newest = await stored(remote)
    assert (newest.note, newest.state) == ("newer", "paused")


async def test_a_restart_moves_no_tick_and_a_change_counts_from_the_next_start(
    world: World,
) -> None:
    first = application(world)
    define(first)
    async with working(first):
        before = await declared(first)
    await first.schedules.pause("nightly", note="migration")
    again = application(world)
    define(again)
    async with working(again):
        paused = await declared(again)
        assert (paused.pause is None, paused.version) == (False, 2)
        assert paused.stored.standing.tick == before.stored.standing.tick
    other = application(world)
    define(other, note="changed")
    async with working(other):
        changed = await declared(other)
        assert (changed.note, changed.version) == ("changed", 3)
        assert changed.pause is not None
        assert changed.stored.standing.tick == before.stored.standing.tick


async def test_they_are_declared_again_while_the_worker_runs(quick: Fairlane) -> None:
    define(quick)
    keeper = ScheduleKeeper(quick, pause=0.01)
    await keeper.declare(quick.run)
    repeating = asyncio.create_task(keeper.run())
    try:
        for _ in range(2):  # the store was emptied, or somebody deleted it by mistake
            assert await quick.schedules.delete("nightly")
            await stored(quick)
    finally:
        repeating.cancel()
        await asyncio.gather(repeating, return_exceptions=True)


async def test_an_older_process_takes_back_nothing(quick: Fairlane) -> None:
    define(quick)
    old = ScheduleKeeper(quick)
    await old.declare(quick.run)
    newer = Fairlane("sqlite://")
    define(newer, note="newer")
    newer._connection.adopt(quick.backend)
    await ScheduleKeeper(newer).declare(newer.run)
    await old.declare(quick.run)
    assert (await stored(quick)).note == "newer"


async def test_a_store_that_is_away_does_not_end_the_repetition(
    quick: Fairlane, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(quick)
    run, failures = quick.run, [StoreUnavailable("away"), RuntimeError("a defect")]

    async def failing(op: Op[Any]) -> Any:
        if failures and op.name == "put_schedules":
            raise failures.pop(0)
        return await run(op)

    monkeypatch.setattr(quick, "run", failing)
    keeper = ScheduleKeeper(quick, pause=0.01)
    with caplog.at_level(logging.WARNING, "fairlane.worker"):
        repeating = asyncio.create_task(keeper.run())
        try:
            await stored(quick)
        finally:
            repeating.cancel()
            await asyncio.gather(repeating, return_exceptions=True)
    away, defect = (record.getMessage() for record in caplog.records)
    assert away == "Cannot declare the schedules of the code again: away"
    assert defect.endswith("a defect")


@pytest.mark.parametrize("told", [True, False])
async def test_a_worker_that_may_not_declare_them_works_all_the_same(
    quick: Fairlane, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """Only an application that has schedules is told."""

    def refuse() -> NoReturn:
        raise AccessDenied("This token may not do that.")

    def denied(*_: Any, **__: Any) -> Op[Any]:
        return Op("put_schedules", Mode.WRITE, refuse)

    monkeypatch.setattr(type(quick.backend.ops), "put_schedules", denied)
    if told:
        define(quick)

    @quick.task
    async def work() -> int:
        return 1

    with caplog.at_level(logging.WARNING, "fairlane.worker"):
        async with working(quick):
            assert await (await work.submit()).result(PATIENCE) == 1
    said = [record.getMessage() for record in caplog.records]
    warning = "Cannot declare the schedules of the code: This token may not do that."
    assert said == ([warning] if told else [])


async def test_in_a_process_of_its_own_too(memory: World) -> None:
    isolated.app._connection.adopt(memory.backend)
    try:
        async with working(isolated.app, target=isolated.TARGET, concurrency=1):
            call = isolated.tick_of.prepare()
            await isolated.app.schedules.put("daily", call, cron="@daily", tz="Asia/Tokyo")
            at = datetime(2026, 3, 1, 15, tzinfo=UTC)
            handle = await isolated.app.schedules.run("daily", at=at)
            assert await handle.result(PATIENCE) == "2026-03-02 00:00:00+09:00 Asia/Tokyo"
            plain = await isolated.tick_of.submit()
            assert await plain.result(PATIENCE) == "None"
    finally:
        await isolated.app.aclose()


async def test_what_is_gone_from_the_code_is_dropped_a_day_later(world: World) -> None:
    app = application(world)
    define(app)
    async with working(app):
        await declared(app)
    await world.advance(timedelta(hours=25).total_seconds())
    without = application(world)
    without.name = "shop"

    @without.task
    async def work() -> int:
        return 1

    async with working(without):
        assert await (await work.submit()).result(PATIENCE) == 1
    await world.advance(61)
    await world.run(world.ops.sweep_schedules())
    assert await app.schedules.get("nightly") is None
