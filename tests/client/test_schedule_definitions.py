"""`@app.cron` and `@app.every`: what they refuse at once, and the schedules that they declare."""

from __future__ import annotations

import base64
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlane import Context, Fairlane, MemoryStore
from fairlane.client.schedule_declarations import declare, declare_again
from fairlane.client.testing import MemoryApp
from fairlane.core.errors import (
    InvalidArguments,
    InvalidHandler,
    InvalidSchedule,
    ScheduleConflict,
)
from fairlane.core.flow import perform
from fairlane.core.recurrence import Cron, Every
from fairlane.core.schedules import Source


def test_a_schedule_is_declared_and_the_task_stays_a_task() -> None:
    app = Fairlane("sqlite://")

    @app.cron("30 2 * * MON-FRI", tz="Europe/Berlin", overlap="queue", note="every night")
    @app.every(minutes=5, offset=timedelta(seconds=30), id="often", arguments={"copies": 2})
    @app.task(queue="reports")
    async def settle(ctx: Context, copies: int = 1) -> int:
        return copies

    assert app.tasks == {"settle": settle}
    assert settle.prepare(copies=3).task.payload == b'{"copies":3}'
    often, nightly = app.declared.values()
    assert (nightly.schedule_id, often.schedule_id) == ("settle", "often")
    assert nightly.rule == Cron("30 2 * * MON-FRI", "Europe/Berlin")
    assert often.rule == Every(300_000_000, 30_000_000)
    assert (nightly.payload, often.payload) == (b"{}", b'{"copies":2}')
    assert (nightly.policy.overlap, nightly.note) == ("queue", "every night")
    assert nightly.template.queue == "reports"


def test_options_of_the_tasks() -> None:
    app = Fairlane("sqlite://")

    @app.task
    def work() -> None: ...

    slow = work.options(queue="slow")
    assert app.every(hours=1)(slow) is slow
    assert app.declared["work"].template.queue == "slow"


def test_lengths_add_up() -> None:
    app = Fairlane("sqlite://")

    @app.every(weeks=1, days=1, hours=1, minutes=1, seconds=1)
    @app.task
    def work() -> None: ...

    assert app.declared["work"].rule == Every(694_861_000_000)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: app.cron("60 * * * *"), "minute '60'"),
        (lambda app: app.cron("@daily", tz="Mars/Base"), "no time zone"),
        (lambda app: app.every(), "at least one second"),
        (lambda app: app.every(minutes="5"), "This is no interval: .*'5'"),
        (lambda app: app.every(days=1e300), "This is no interval"),
        (lambda app: app.every(hours=1, offset=-1), "An offset is"),
        (lambda app: app.every(hours=1, most=0), "most is a whole number"),
        (lambda app: app.every(hours=1, colour=1), "no option colour"),
        (lambda app: app.every(hours=1, id="an id"), "A schedule's id has"),
    ],
)
def test_mistakes_are_found_where_they_are_made(declare: Any, message: str) -> None:
    app = Fairlane("sqlite://")

    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidSchedule, match=message):
        declare(app)(work)
    assert app.declared == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": "one"}, "Expected `int`, got `str`"),
        ({}, "missing a required argument: 'n'"),
        (None, "missing a required argument: 'n'"),
        ({"n": 1, "m": 1}, "unexpected keyword argument 'm'"),
    ],
)
def test_arguments_are_checked_against_the_handler(arguments: Any, message: str) -> None:
    app = Fairlane("sqlite://")

    @app.task
    def work(n: int) -> None: ...

    with pytest.raises(InvalidArguments, match=message) as caught:
        app.every(hours=1, arguments=arguments)(work)
    assert caught.value.message.endswith("A schedule calls work with its arguments={…}.")
    assert app.declared == {}


def test_the_order_of_decorators_and_ids() -> None:
    app = Fairlane("sqlite://")
    with pytest.raises(InvalidSchedule, match=r"put @app\.cron and @app\.every above @app\.task"):

        @app.cron("@daily")  # type: ignore[type-var]
        def wrong() -> None: ...

    with pytest.raises(InvalidSchedule, match="Two schedules have the id twice"):

        @app.cron("@daily")
        @app.every(hours=1)
        @app.task
        def twice() -> None: ...

    with pytest.raises(InvalidHandler, match="cannot name an application"):
        Fairlane("sqlite://", name="my shop")
    assert Fairlane("sqlite://").name == "default"


# -- in the store ----------------------------------------------------------------------------------


@pytest.fixture
def app() -> Any:
    with MemoryApp() as app:
        yield app


def declared(app: Fairlane, **options: Any) -> Any:
    """What another version of the application declares."""
    other = Fairlane("sqlite://")

    @other.task(name="work")
    def work() -> None: ...

    other.every(**options)(work)
    return other.declared.values()


def test_only_the_code_changes_what_it_declares(app: MemoryApp) -> None:
    app.name = "shop"

    @app.every(hours=1)
    @app.task
    def work() -> None: ...

    stored = app.schedules.get_sync("work")
    assert stored is not None
    assert (stored.source, stored.owner) == (Source.CODE, "shop")
    with pytest.raises(ScheduleConflict, match="declared by the code of shop"):
        app.schedules.put_sync("work", work.prepare(), every=60)
    assert app.schedules.pause_sync("work").pause is not None
    assert app.schedules.resume_sync("work").pause is None
    app.schedules.run_sync("work")
    assert app.work_sync() == 1


def test_the_process_that_started_last_is_right(app: MemoryApp) -> None:
    ops, run = app.backend.ops, app.run_sync
    old, new = declared(app, hours=1), declared(app, hours=2)
    perform(declare(ops, "shop", old), run)
    perform(declare(ops, "shop", new), run)
    perform(
        declare_again(ops, "shop", old), run
    )  # a process of the old version goes on for a while
    assert _interval(app) == timedelta(hours=2)
    perform(declare(ops, "shop", old), run)  # it is rolled back
    assert _interval(app) == timedelta(hours=1)
    perform(declare_again(ops, "warehouse", new), run)  # another application has the same id
    assert _interval(app) == timedelta(hours=1)
    app.schedules.delete_sync("work")
    perform(declare_again(ops, "shop", old), run)  # the store was emptied, for example
    assert _interval(app) == timedelta(hours=1)


def _interval(app: MemoryApp) -> timedelta | None:
    found = app.schedules.get_sync("work")
    assert found is not None
    return found.every


def test_what_is_declared_again_is_not_dropped(app: MemoryApp) -> None:
    ops, run = app.backend.ops, app.run_sync
    perform(declare(ops, "shop", declared(app, hours=1)), run)
    app.advance(timedelta(hours=25))
    perform(declare_again(ops, "shop", declared(app, hours=1)), run)
    run(ops.sweep_schedules())
    assert _interval(app) == timedelta(hours=1)
    app.advance(timedelta(hours=25))
    perform(declare(ops, "shop", []), run)  # a version without schedules
    app.advance(timedelta(minutes=2))
    run(ops.sweep_schedules())
    assert app.schedules.get_sync("work") is None


def test_encrypted_ones_are_declared_again_too(tmp_path: Path) -> None:
    key = "k1:" + base64.b64encode(bytes(32)).decode()
    with Fairlane(f"sqlite:///{tmp_path}/tasks.db", encryption_keys=key) as app:
        ops, run = app.backend.ops, app.run_sync
        perform(declare(ops, "shop", declared(app, hours=1)), run)
        run(ops.shift_clock(25 * 3600))
        perform(declare_again(ops, "shop", declared(app, hours=1)), run)
        perform(declare(ops, "shop", []), run)
        run(ops.shift_clock(61))
        run(ops.sweep_schedules())
        assert app.schedules.get_sync("work") is not None


def test_one_that_is_refused_does_not_keep_out_others(
    app: MemoryApp, caplog: pytest.LogCaptureFixture
) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    many = Fairlane("sqlite://")

    @many.task
    def work() -> None: ...

    for number in range(150):
        many.every(hours=1, id=f"s{number}", ends_at=past if number == 120 else None)(work)
    with caplog.at_level(logging.WARNING, "fairlane.schedules"):
        perform(declare(app.backend.ops, "shop", many.declared.values()), app.run_sync)
    (record,) = caplog.records
    assert "The schedule s120 is not declared" in record.getMessage()
    assert "would never fire" in record.getMessage()
    page = app.schedules.list_sync()
    assert len(page.schedules) == 100
    assert len(app.schedules.list_sync(cursor=page.next_cursor).schedules) == 49


# -- in tests --------------------------------------------------------------------------------------

shop = Fairlane("postgresql://nobody@localhost:1/nowhere", name="shop", migrate=False)
ran: list[datetime | None] = []


@shop.every(hours=6, id="six", overlap="allow")
@shop.cron("30 2 * * *", tz="Asia/Tokyo")  # whose clock is never set
@shop.task
async def nightly(ctx: Context) -> None:
    ran.append(ctx.scheduled_for)


@shop.task
async def later() -> None:
    ran.append(None)


@pytest.fixture
def store() -> Any:
    ran.clear()
    with shop.in_memory() as store:
        yield store


def test_schedules_of_the_code_are_in_the_store_of_a_test(store: MemoryStore) -> None:
    page = shop.schedules.list_sync()
    assert {each.schedule_id for each in page.schedules} == {"nightly", "six"}
    assert {each.owner for each in page.schedules} == {"shop"}


def test_they_fire_tick_by_tick_when_the_clock_moves(store: MemoryStore) -> None:
    store.advance(timedelta(days=1))
    tasks = store.assert_submitted(nightly, count=5)
    ticks = [task.stored.schedule_id for task in tasks]
    assert sorted(map(str, ticks)) == ["nightly", *["six"] * 4]
    assert ran == []  # nothing runs
    assert store.work_sync() == 5
    assert ran == sorted(ran, key=lambda tick: tick or datetime.max.replace(tzinfo=UTC))


async def test_they_run_when_they_are_due(store: MemoryStore) -> None:
    await later.options(delay_seconds=timedelta(hours=12, minutes=1)).submit()
    assert await store.work(within=timedelta(days=1)) == 6
    assert ran.count(None) == 1
    ticks = [tick for tick in ran if tick is not None]
    assert ticks == sorted(ticks)
    before = [tick for tick in ran[: ran.index(None)] if tick is not None]
    assert 2 <= len(before) <= 3
    assert shop.schedules.get_sync("six").totals.fired == 4  # type: ignore[union-attr]


def test_in_place_they_run_on_the_way_and_do_not_go_on_for_ever() -> None:
    ran.clear()
    with shop.inline() as store:
        later.options(delay_seconds=timedelta(days=1)).submit_sync()
        assert len(ran) == 6
        assert ran[-1] is None  # then nothing else is due, but for ticks
        store.advance(timedelta(hours=6))
        store.assert_submitted(nightly)


def test_more_ticks_than_anybody_wants(monkeypatch: pytest.MonkeyPatch, app: MemoryApp) -> None:
    """What is left of them is handled in one step, as after an outage."""
    monkeypatch.setattr("fairlane.client.schedule_clock.MOST_TICKS", 10)
    monkeypatch.setattr("fairlane.client.inline.MOST_TICKS", 10)

    @app.every(seconds=1)
    @app.task
    def tick() -> None: ...

    app.advance(1_000)
    stored = app.schedules.get_sync("tick")
    assert stored is not None
    assert stored.totals.missed + stored.totals.skipped + stored.totals.fired >= 1_000
    assert len(app.submitted(tick)) == 1
    assert app.work_sync(within=1_000) == 11
