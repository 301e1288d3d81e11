"""`app.schedules`: what users say about schedules, and what they are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fairlane import Context, Fairlane, Schedule, State
from fairlane.client.testing import MemoryApp
from fairlane.core import limits, recurrence
from fairlane.core.definitions import Definition
from fairlane.core.errors import (
    InvalidCursor,
    InvalidLimit,
    InvalidSchedule,
    InvalidTask,
    ScheduleConflict,
    UnknownSchedule,
    UnknownType,
)
from fairlane.core.model import moment
from fairlane.core.schedules import (
    Missed,
    Outcome,
    Overlap,
    ScheduleState,
    Source,
    new_schedule,
)
from fairlane.core.submission import new_task
from fairlane.core.zones import zone_of
from fairlane.runtime.schedules import ScheduleTotals

BERLIN = ZoneInfo("Europe/Berlin")


class App(MemoryApp):
    """An application with a task that remembers for which ticks it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[datetime | None] = []

        @self.task(queue="reports", priority="high", tags={"team": "north"})
        async def report(ctx: Context, customer: str, copies: int = 1) -> str:
            self.seen.append(ctx.scheduled_for)
            return customer * copies

        self.report = report


@pytest.fixture
async def app() -> Any:
    async with App() as app:
        yield app


async def nightly(app: App, schedule_id: str = "acme", **options: Any) -> Schedule:
    """A schedule with one tick in any 24 hours: its clock is never set."""
    return await app.schedules.put(
        schedule_id,
        app.report.prepare("acme"),
        **{"cron": "30 2 * * *", "tz": "Asia/Tokyo", **options},
    )


# -- what is stored, and how it is told ------------------------------------------------------------


async def test_a_schedule_as_users_get_it(app: App) -> None:
    start = datetime(2040, 3, 20, tzinfo=UTC)
    made = await nightly(
        app,
        tz="Europe/Berlin",
        missed="all",
        most=48,
        within=timedelta(days=2),
        overlap="queue",
        jitter=30,
        starts_at=start,
        ends_at=start + timedelta(days=3),
        count=9,
        pause_after_failures=5,
        note="for Acme",
    )
    assert (made.cron, made.tz, made.every, made.offset) == (
        "30 2 * * *",
        "Europe/Berlin",
        None,
        timedelta(),
    )
    assert (made.task_type, made.queue, made.priority) == ("report", "reports", 8)
    assert made.payload == made.parameters == {"customer": "acme"}
    assert (made.missed, made.most, made.within) == (Missed.ALL, 48, timedelta(days=2))
    assert (made.overlap, made.jitter) == (Overlap.QUEUE, timedelta(seconds=30))
    assert (made.starts_at, made.ends_at) == (start, start + timedelta(days=3))
    assert (made.count, made.remaining, made.pause_after_failures) == (9, 9, 5)
    assert (made.note, made.version, made.source, made.owner) == ("for Acme", 1, Source.API, None)
    assert (made.state, made.pause, made.failures) == (ScheduleState.ACTIVE, None, 0)
    assert made.next_at == datetime(2040, 3, 20, 2, 30, tzinfo=BERLIN)
    assert str(made.next_at) == "2040-03-20 02:30:00+01:00"
    assert [tick.at.day for tick in made.upcoming()] == [20, 21, 22]  # then it ends
    assert len(made.upcoming(2)) == 2
    assert (made.runs, made.last_at, made.last_task_id) == ((), None, None)
    assert made.totals == ScheduleTotals(fired=0, skipped=0, missed=0)
    assert made.in_words == "At 02:30 every day, Europe/Berlin"
    assert repr(made) == "<Schedule acme active>"
    assert made.created_at == made.updated_at
    assert made.created_at.tzinfo is UTC
    assert await app.schedules.get("acme") == made
    assert app.schedules.get_sync("acme") == made
    assert await app.schedules.get("nobody") is None


async def test_a_task_that_no_worker_of_the_store_has_yet(app: App) -> None:
    """One's own tasks are known, also before the first worker has started. Those of another
    application on the same store are asked for."""
    other = Fairlane(app.url)

    @other.task
    async def reports() -> None: ...

    call = reports.prepare()
    with pytest.raises(UnknownType, match="No worker has published the task type reports"):
        await app.schedules.put("other", call, every=60)
    assert await app.schedules.get("other") is None
    made = await app.schedules.put("other", call, every=60, allow_unknown_type=True)
    assert made.task_type == "reports"
    assert (await nightly(app)).task_type == "report"
    await app.run(app.backend.ops.publish([Definition(type="reports")]))
    await app.schedules.put("published", call, every=60)
    assert app.schedules.put_sync("twin", call, every=60).version == 1


async def test_an_interval(app: App) -> None:
    made = await app.schedules.put(
        "often",
        app.report.options(queue="slow").prepare("acme"),
        every=timedelta(minutes=5),
        offset=30,
    )
    assert (made.cron, made.every, made.offset) == (
        None,
        timedelta(minutes=5),
        timedelta(seconds=30),
    )
    assert (made.tz, made.queue) == ("UTC", "slow")
    assert made.next_at is not None
    assert (made.next_at.minute % 5, made.next_at.second) == (0, 30)


async def test_the_same_again_changes_nothing_and_versions_are_compared(app: App) -> None:
    made = await nightly(app, version=0)
    assert await nightly(app) == made
    changed = await nightly(app, note="other", version=1)
    assert (changed.version, changed.note, changed.next_at) == (2, "other", made.next_at)
    with pytest.raises(ScheduleConflict, match="version 2, not 1"):
        await nightly(app, note="mine", version=1)
    with pytest.raises(ScheduleConflict):
        await app.schedules.delete("acme", version=1)
    assert await app.schedules.delete("acme", version=2)
    assert not await app.schedules.delete("acme")
    assert not app.schedules.delete_sync("acme")


async def test_pages(app: App) -> None:
    for number in range(5):
        await app.schedules.put(f"s{number}", app.report.prepare("acme"), every=3600)
    page = await app.schedules.list(2)
    assert [each.schedule_id for each in page.schedules] == ["s0", "s1"]
    assert page == app.schedules.list_sync(2)
    found = [each.schedule_id for each in page.schedules]
    while page.next_cursor is not None:
        page = await app.schedules.list(2, page.next_cursor)
        found += [each.schedule_id for each in page.schedules]
    assert found == ["s0", "s1", "s2", "s3", "s4"]
    with pytest.raises(InvalidCursor):
        await app.schedules.list(cursor="x")
    for limit in (0, 101, True):
        with pytest.raises(InvalidLimit, match="From 1 to 100 schedules"):
            await app.schedules.list(limit)


# -- ticks -----------------------------------------------------------------------------------------


async def test_ticks_and_what_became_of_them(app: App) -> None:
    made = await nightly(app)
    assert await app.work(within=timedelta(days=2)) == 2
    found = await app.schedules.get("acme")
    assert found is not None
    assert app.seen == [made.next_at, found.last_at]
    assert [tick is not None and str(tick.tzinfo) for tick in app.seen] == ["Asia/Tokyo"] * 2
    assert found.totals == ScheduleTotals(fired=2, skipped=0, missed=0)
    newest, oldest = found.runs
    assert (oldest.tick, newest.tick) == (made.next_at, found.last_at)
    assert (newest.outcome, newest.task_id) == (Outcome.FIRED, found.last_task_id)
    assert (newest.count, newest.reason) == (1, "")
    (task, _) = app.submitted(app.report, customer="acme")
    assert (task.task_id, task.schedule_id, task.tags) == (
        oldest.task_id,
        "acme",
        {"team": "north"},
    )


async def test_a_task_that_no_schedule_submitted_has_no_tick(app: App) -> None:
    await app.report.submit("acme")
    await app.work()
    assert app.seen == [None]


async def test_a_count_ends_it(app: App) -> None:
    await nightly(app, count=1)
    await app.work(within=timedelta(days=3))
    found = app.schedules.get_sync("acme")
    assert found is not None
    assert (found.state, found.remaining, found.next_at) == (ScheduleState.ENDED, 0, None)
    assert found.upcoming() == []
    assert len(app.seen) == 1
    paused = app.schedules.pause_sync("acme")
    assert (paused.state, paused.next_at) == (ScheduleState.PAUSED, None)


# -- what operators do -----------------------------------------------------------------------------


async def test_a_zone_that_is_not_known_here(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has stored the schedule. Its times are in UTC."""
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        rule: Any = recurrence.Cron("30 2 * * *", "Mars/Olympus")
        new = new_schedule("acme", rule, new_task("report"))
        (stored,) = await app.run(app.backend.ops.put_schedules([new]))
    (listed,) = (await app.schedules.list()).schedules
    found = await app.schedules.get("acme")
    assert found is not None
    assert (found.problem, listed.problem) == (stored.problem, stored.problem)
    assert "Mars/Olympus" in (found.problem or "")
    assert (found.tz, found.next_at) == ("Mars/Olympus", moment(stored.standing.tick or 0))
    assert found.upcoming() == []
    assert (await app.schedules.pause("acme")).state is ScheduleState.PAUSED
    assert (await nightly(app)).problem is None


async def test_pausing(app: App) -> None:
    await nightly(app)
    paused = await app.schedules.pause("acme", note="migration")
    assert paused.state is ScheduleState.PAUSED
    assert paused.pause is not None
    assert (paused.pause.note, paused.pause.until) == ("migration", None)
    assert paused.pause.since.tzinfo is UTC
    assert (paused.next_at, paused.upcoming()) == (None, [])
    assert await app.work(within=timedelta(days=3)) == 0
    resumed = await app.schedules.resume("acme")
    assert (resumed.state, resumed.pause) == (ScheduleState.ACTIVE, None)
    assert resumed.totals == ScheduleTotals(fired=0, skipped=3, missed=0)
    assert [(run.outcome, run.count) for run in resumed.runs] == [(Outcome.PAUSED, 3)]


async def test_the_next_tick_after_a_pause_that_ends_by_itself(app: App) -> None:
    made = await nightly(app)
    assert made.next_at is not None
    until = made.next_at + timedelta(days=1)  # that tick is in the pause too
    paused = app.schedules.pause_sync("acme", until=until)
    assert paused.pause is not None
    assert paused.pause.until == until
    assert paused.next_at is not None
    assert paused.next_at.date() == (until + timedelta(days=1)).date()
    assert paused.upcoming(1)[0].at == paused.next_at
    ending = await nightly(app, ends_at=until)
    assert ending.next_at is None


async def test_catching_up_after_a_pause(app: App) -> None:
    await nightly(app, within=timedelta(days=9))
    app.schedules.pause_sync("acme")
    app.advance(timedelta(days=3))
    app.schedules.resume_sync("acme", missed="all")
    assert await app.work() == 3
    assert app.seen == sorted(app.seen, key=str)


async def test_running_now(app: App) -> None:
    made = await nightly(app)
    handle = await app.schedules.run("acme")
    await app.work()
    assert await handle.result(30) == "acme"
    at = datetime(2026, 3, 1, 2, 30, tzinfo=BERLIN)
    app.schedules.run_sync("acme", at=at)
    await app.work()
    assert app.seen[1] == at
    found = await app.schedules.get("acme")
    assert found is not None
    assert found.next_at == made.next_at
    assert [run.outcome for run in found.runs] == [Outcome.MANUAL] * 2


async def test_backfilling_a_week(app: App) -> None:
    made = await nightly(app, tz="Europe/Berlin")
    since = datetime(2026, 3, 26, tzinfo=BERLIN)
    until = since + timedelta(days=7)
    ticks = made.ticks(since, until)
    assert [str(tick)[5:] for tick in ticks] == [
        "03-26 02:30:00+01:00",
        "03-27 02:30:00+01:00",
        "03-28 02:30:00+01:00",
        "03-29 03:00:00+02:00",  # the clock is set forward at two
        "03-30 02:30:00+02:00",
        "03-31 02:30:00+02:00",
        "04-01 02:30:00+02:00",
    ]
    handles = await app.schedules.backfill("acme", since=since, until=until)
    assert len(handles) == 7
    assert await app.work() == 7
    assert app.seen == ticks
    assert await handles[6].status() is State.COMPLETED
    app.schedules.backfill_sync("acme", since=since, until=until, overlap="allow")
    assert await app.work() == 7
    with pytest.raises(InvalidSchedule, match="More than 1,000 ticks"):
        made.ticks(since - timedelta(days=3_000), since)


def test_in_place() -> None:
    with Fairlane("sqlite://") as app:
        seen: list[datetime | None] = []

        @app.task
        def work(ctx: Context) -> int:
            seen.append(ctx.scheduled_for)
            return len(seen)

        with app.inline():
            app.schedules.put_sync("daily", work.prepare(), cron="@daily")
            assert app.schedules.run_sync("daily").result_sync() == 1
            day = datetime(2026, 3, 1, tzinfo=UTC)
            until = day + timedelta(days=2)
            handles = app.schedules.backfill_sync("daily", since=day, until=until)
            assert [handle.result_sync() for handle in handles] == [2, 3]
            assert seen[1:] == [day, day + timedelta(days=1)]


# -- preview ---------------------------------------------------------------------------------------


def test_a_preview_asks_no_store() -> None:
    app = Fairlane("postgresql://nobody@localhost:1/nowhere")
    after = datetime(2026, 10, 23, 12, tzinfo=UTC)
    found = app.schedules.preview("30 2 * * *", tz="Europe/Berlin", n=3, after=after)
    assert found.in_words == "At 02:30 every day, Europe/Berlin"
    assert [(str(tick.at), tick.note) for tick in found.ticks] == [
        ("2026-10-24 02:30:00+02:00", None),
        (
            "2026-10-25 02:30:00+02:00",
            "This time comes twice, because the clock is set back: it fires the first time only.",
        ),
        ("2026-10-26 02:30:00+01:00", "Before it the clock is set back by 1 hour."),
    ]
    assert len(app.schedules.preview(every=60).ticks) == 5
    for n in (0, 1_001, True):
        with pytest.raises(InvalidSchedule, match="n is a whole number"):
            app.schedules.preview("@daily", n=n)
    with pytest.raises(InvalidSchedule, match="after is a datetime with a time zone"):
        app.schedules.preview("@daily", after=datetime(2026, 1, 1))  # noqa: DTZ001


# -- bad input -------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "Give either cron or every"),
    ({"cron": "@daily", "every": 5}, "Give either cron or every"),
    ({"every": 60, "tz": "UTC"}, "tz goes with cron"),
    ({"cron": "@daily", "offset": 5}, "offset goes with every"),
    ({"every": 60, "offset": 60}, "less than the interval"),
    ({"every": 0}, "at least one second"),
    ({"cron": "60 * * * *"}, "minute '60'"),
    ({"cron": "0 0 0 * * *"}, "six fields"),
    ({"cron": "0 0 30 2 *"}, "never fires"),
    ({"cron": "x" * 10_000}, "at most 200 characters"),
    ({"cron": "@daily", "tz": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
    ({"cron": "@daily", "most": 0}, "most is a whole number from 1"),
    ({"cron": "@daily", "missed": "never"}, "missed is one of skip, once, all"),
    ({"cron": "@daily", "overlap": "maybe"}, "overlap is one of"),
    ({"cron": "@daily", "within": 0}, "within is a timedelta"),
    ({"cron": "@daily", "ends_at": datetime(2020, 1, 1, tzinfo=UTC)}, "would never fire"),
    ({"cron": "@daily", "ends_at": datetime(2040, 1, 1)}, "with a time zone"),  # noqa: DTZ001
    ({"cron": "@daily", "note": "a\nb"}, "on one line"),
    ({"cron": "@daily", "colour": "red"}, "no option colour. There are count, ends_at"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
async def test_what_cannot_be_is_refused(app: App, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        await app.schedules.put("acme", app.report.prepare("acme"), **options)
    with pytest.raises(InvalidSchedule, match=message):
        app.schedules.put_sync("acme", app.report.prepare("acme"), **options)
    assert (await app.schedules.list()).schedules == []


async def test_tasks_that_a_schedule_cannot_have(app: App) -> None:
    for options, message in (
        ({"idempotency_key": "k"}, "cannot all have the same idempotency_key"),
        ({"unique": True}, "cannot be unique"),
    ):
        call = app.report.options(**options).prepare("acme")
        with pytest.raises(InvalidSchedule, match=message):
            await app.schedules.put("acme", call, every=60)
    with pytest.raises(InvalidSchedule, match=r"task\.prepare"):
        await app.schedules.put("acme", app.report, every=60)  # type: ignore[arg-type]
    with pytest.raises(InvalidSchedule, match="A schedule's id has"):
        await app.schedules.put("an id", app.report.prepare("acme"), every=60)
    elsewhere = Fairlane("sqlite:///elsewhere.db")
    elsewhere.blobs = "store"

    @elsewhere.task
    def work(text: str) -> None: ...

    with pytest.raises(InvalidTask, match="of another application"):
        await app.schedules.put("acme", work.prepare("a"), every=60)
    with pytest.raises(InvalidSchedule, match="at most 262,144 bytes"):
        await app.schedules.put("acme", work.prepare("a" * limits.PAYLOAD_BYTES), every=60)
    assert (await app.schedules.list()).schedules == []


async def test_calls_for_what_is_not_there(app: App) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    for call in (
        lambda: app.schedules.pause("nobody"),
        lambda: app.schedules.resume("nobody"),
        lambda: app.schedules.run("nobody"),
        lambda: app.schedules.backfill("nobody", since=day, until=day),
    ):
        with pytest.raises(UnknownSchedule, match=r"There is no schedule '?nobody"):
            await call()


async def test_calls_that_cannot_be(app: App) -> None:
    await nightly(app)
    naive, past = datetime(2040, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)  # noqa: DTZ001
    for call, message in (
        (lambda: app.schedules.pause("acme", until=naive), "until is a datetime with"),
        (lambda: app.schedules.pause("acme", until=past), "lies in the past"),
        (lambda: app.schedules.pause("acme", note="x" * 1_001), "at most 1,000 characters"),
        (lambda: app.schedules.resume("acme", missed="some"), "missed is one of"),
        (lambda: app.schedules.run("acme", at=naive), "at is a datetime with"),
        (lambda: app.schedules.backfill("acme", since=naive, until=past), "since is a datetime"),
        (
            lambda: app.schedules.backfill("acme", since=past, until=past, overlap="some"),
            "overlap is one of",
        ),
    ):
        with pytest.raises(InvalidSchedule, match=message):
            await call()
    found = await app.schedules.get("acme")
    assert found is not None
    assert (found.version, found.runs) == (1, ())
