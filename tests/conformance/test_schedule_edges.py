"""Schedules at their edges: rare days, the end of time, bad input, many at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidInput, InvalidSchedule, ScheduleConflict, UnknownSchedule
from fairlane.core.firing import fire_time
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.model import TaskError, microseconds_of, moment
from fairlane.core.outcomes import Failed
from fairlane.core.recurrence import cron, every
from fairlane.core.retention import Retention
from fairlane.core.schedules import Missed, Outcome, Overlap
from fairlane.core.scheduling import backfilled
from fairlane.core.states import State
from tests.conformance.test_schedules import (
    HOUR,
    LEAD,
    SECOND,
    clock,
    declared,
    fire,
    get,
    hourly,
    outcomes,
    put,
    tasks_of,
)
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

DAY = 24 * HOUR


async def advance_to(store: World, time: int | None) -> None:
    """Let time pass until a second after that."""
    assert time is not None
    await store.advance((time - await clock(store)) / SECOND + 1)


# -- times -----------------------------------------------------------------------------------------


async def test_the_29th_of_february(store: World) -> None:
    rule: Any = cron("0 12 29 2 *", "Europe/Berlin")
    schedule = await put(store, declared("leap", rule, overlap="allow"))
    years = []
    for _ in range(2):
        tick = schedule.standing.tick
        await advance_to(store, tick)
        assert await fire(store) == [("leap", Outcome.FIRED)]
        years.append(moment(tick or 0))
        schedule = await get(store, "leap")
    assert [(each.month, each.day, each.hour) for each in years] == [(2, 29, 11)] * 2
    assert years[1].year - years[0].year == 4


async def test_the_last_tick_there_is(store: World) -> None:
    end = datetime(9999, 12, 31, tzinfo=UTC)
    rule: Any = cron("0 0 * * *")
    schedule = await put(store, declared("last", rule, starts_at=end, missed="skip"))
    assert schedule.standing.tick == microseconds_of(end)
    wait = await store.run(store.ops.due_schedules())
    assert wait is not None
    assert wait > 7_000 * 365 * 86_400
    (page,) = (await store.run(store.ops.schedule_page())).schedules
    assert page == schedule
    (tick,) = backfilled(schedule, microseconds_of(end), 10**18)
    task_id = await store.run(store.ops.run_schedule("last", new_id(), tick=tick))
    assert (await store.task(task_id)).schedule_id == "last"


async def test_jitter_and_a_tick_of_another_process(store: World) -> None:
    """Each process computes the same time for it, and it lies before the next tick."""
    rule = await hourly(store)
    await put(store, declared("daily", rule, jitter=7_000, overlap="allow"))
    processes = store.processes(2)
    waits = [await each.run(each.ops.due_schedules()) for each in processes]
    assert waits[0] == pytest.approx(waits[1], abs=5)
    assert waits[0] is not None
    assert LEAD - 10 < waits[0] < LEAD + 3600
    for _ in range(5):
        wait = await store.run(store.ops.due_schedules())
        assert wait is not None
        await store.advance(wait + 1)
        # Whoever fires it does not find that it is too early.
        assert (await fire(store))[-1] == ("daily", Outcome.FIRED)


# -- policies --------------------------------------------------------------------------------------


async def test_a_count_ends_a_schedule_for_good(store: World) -> None:
    """Whatever is done to it then, no tick is told that it does not have."""
    await put(store, declared("once", await hourly(store), count=1))
    await store.advance(LEAD + 1)
    assert await fire(store) == [("once", Outcome.FIRED)]
    await store.advance(3 * 3600)
    until = await clock(store) + HOUR
    await store.run(store.ops.pause_schedule("once", until=until))
    await store.advance(2 * 3600)
    assert await fire(store) == []
    await store.run(store.ops.pause_schedule("once"))
    await store.advance(3600)
    await store.run(store.ops.resume_schedule("once", missed=Missed.ALL))
    assert await fire(store) == []
    assert await outcomes(store, "once") == [(Outcome.FIRED, 1)]
    assert (await store.run(store.ops.tick_counts())).outcomes == {Outcome.FIRED: 1}


async def test_ticks_beyond_a_count_that_was_not_reached(store: World) -> None:
    """The previous task has not ended: no tick of a schedule that goes on is lost unseen."""
    await put(store, declared("daily", await hourly(store), missed="all", count=3))
    await store.advance(LEAD + 1)
    await fire(store)
    await store.advance(5 * 3600)
    for _ in range(3):
        await fire(store)
    assert await outcomes(store, "daily") == [
        (Outcome.FIRED, 1),
        (Outcome.OVERLAP, 2),
        (Outcome.OVERLAP, 2),
        (Outcome.OVERLAP, 1),
    ]


async def test_a_success_ends_a_row_of_failures(store: World) -> None:
    await put(store, declared("daily", await hourly(store), pause_after_failures=2))
    worker = await store.worker(lease=86_400)
    await store.advance(LEAD + 1)
    broken = Failed(TaskError("no", retriable=False))
    for outcome in (broken, None, broken, None):
        assert await fire(store) == [("daily", Outcome.FIRED)]
        await store.claim_and_settle(worker, outcome)
        await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.FIRED)]


async def test_jitter_beyond_the_window_misses_nothing(store: World) -> None:
    """What is fired on time is not too old, although its tick was long ago."""
    new = declared("late", await hourly(store), jitter=1_800, within=600, overlap="allow")
    schedule = await put(store, new)
    for _ in range(12):
        await advance_to(store, fire_time(schedule, schedule.standing.tick or 0))
        assert await fire(store) == [("late", Outcome.FIRED)]
        schedule = await get(store, "late")


async def test_in_a_queue_one_waits_at_the_most(store: World) -> None:
    """Also of those that nobody fired in time."""
    await put(store, declared("daily", await hourly(store), missed="all", overlap="queue"))
    worker = await store.worker(lease=86_400)
    await store.advance(5 * 3600)
    await fire(store)
    fired = [(Outcome.FIRED, 1)]
    assert await outcomes(store, "daily") == [*fired * 2, (Outcome.OVERLAP, 3)]
    states = [await store.state(each) for each in await tasks_of(store, "daily")]
    assert states == [State.QUEUED, State.SCHEDULED]
    for _ in range(2):
        running = await store.claim_one(worker)
        await store.advance(5 * 3600)
        await fire(store)
        states = [await store.state(each) for each in await tasks_of(store, "daily")]
        assert (states[-2:], await store.claim(worker)) == (
            [State.EXECUTING, State.SCHEDULED],
            [],
        )
        await store.settle(running)


async def test_what_is_caught_up_ends_with_its_pause(store: World) -> None:
    """An outage after a pause is no part of it, whether or not the pause had ticks."""
    for hours in (0, 2):
        new = declared(f"s{hours}", await hourly(store), missed="skip", overlap="allow")
        await put(store, new)
        await store.run(store.ops.pause_schedule(new.schedule_id))
        await store.advance(hours * 3600 + (LEAD + 60 if hours else 0))
        await store.run(store.ops.resume_schedule(new.schedule_id, missed=Missed.ALL))
        await store.advance(11 * 3600 + 120)
        for _ in range(3):
            await fire(store)
    assert await outcomes(store, "s2") == [*[(Outcome.FIRED, 1)] * 3, (Outcome.MISSED, 11)]
    assert (await outcomes(store, "s0"))[0] == (Outcome.MISSED, 12)


BROKEN = Failed(TaskError("no", retriable=False))


async def pause_after(store: World, failures: int, **options: Any) -> str:
    """A schedule that is about to fire, and a worker."""
    new = declared("daily", await hourly(store), pause_after_failures=failures, **options)
    await put(store, new)
    await store.advance(LEAD + 1)
    return await store.worker(lease=86_400)


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [((BROKEN, None, BROKEN), Outcome.FIRED), ((BROKEN, BROKEN), Outcome.PAUSED)],
)
async def test_how_tasks_ended_counts_although_they_were_deleted(
    store: World, outcomes: Any, last: Outcome
) -> None:
    """Tasks are not kept until the next tick of a schedule that fires once a week."""
    worker = await pause_after(store, 2)
    for outcome in outcomes:
        assert await fire(store) == [("daily", Outcome.FIRED)]
        await store.claim_and_settle(worker, outcome)
        wait = await store.run(store.ops.due_schedules())
        assert wait is not None
        assert wait <= limits.SCHEDULE_LOOK_SECONDS
        await store.advance(limits.SCHEDULE_LOOK_SECONDS + 1)
        assert await fire(store) == []
        await store.run(store.ops.prune(Retention(completed=1, failed=1, dead_letter=1)))
        assert await tasks_of(store, "daily") == []
        await store.advance(3600 - limits.SCHEDULE_LOOK_SECONDS - 1)
    assert await fire(store) == [("daily", last)]


async def test_what_was_deleted_at_once_counts_as_neither(store: World) -> None:
    worker = await pause_after(store, 2)
    for outcome in (BROKEN, None, BROKEN):
        assert await fire(store) == [("daily", Outcome.FIRED)]
        task = await store.claim_and_settle(worker, outcome)
        if outcome is None:
            await store.run(store.ops.delete([task.task_id]))
        await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.PAUSED)]


@pytest.mark.parametrize("overlap", [Overlap.QUEUE, Overlap.ALLOW])
async def test_failures_after_the_next_tick_are_counted(store: World, overlap: Overlap) -> None:
    """Each task still runs when the next tick is due."""
    worker = await pause_after(store, 3, overlap=overlap)
    await fire(store)
    for _ in range(3):
        running = await store.claim_one(worker)
        await store.advance(3600)
        assert await fire(store) == [("daily", Outcome.FIRED)]
        await store.settle(running, BROKEN)
    await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.PAUSED)]


async def test_every_task_that_was_caught_up_counts(store: World) -> None:
    worker = await pause_after(store, 5, missed="all")
    await store.advance(5 * 3600)
    assert await fire(store) == [("daily", Outcome.FIRED)] * 6
    for _ in range(6):
        await store.claim_and_settle(worker, BROKEN)
    await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.PAUSED)]
    assert (await get(store, "daily")).standing.failures == 6


async def test_a_page_begins_with_what_fires_next(store: World) -> None:
    """Whose tasks are only looked at stands where its next tick is."""
    await pause_after(store, 2)
    await put(store, declared("soon", await hourly(store, 600)))
    await fire(store)
    page = await store.run(store.ops.schedule_page())
    assert [each.schedule_id for each in page.schedules] == ["soon", "daily"]


async def test_a_refusal_while_others_are_caught_up(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ticks are told, and it goes on with the next one."""
    rule = await hourly(store)
    await store.submit("work")
    await put(store, declared("bad", rule, "unheard-of", missed="all", overlap="replace"))
    await put(store, declared("good", rule, missed="all"))
    await store.advance(3 * 3600)
    with monkeypatch.context() as patch:
        patch.setattr("fairlane.core.limits.LANES", 1)
        await fire(store)
    assert await outcomes(store, "good") == [(Outcome.FIRED, 1)] * 3
    assert await outcomes(store, "bad") == [(Outcome.OVERLAP, 2), (Outcome.REFUSED, 1)]
    assert await tasks_of(store, "bad") == []
    await store.advance(3600)
    await fire(store)
    assert len(await tasks_of(store, "bad")) == 1


# -- bad input -------------------------------------------------------------------------------------


async def test_what_is_refused_changes_nothing(store: World) -> None:
    rule, ops, now = await hourly(store), store.ops, await clock(store)
    await put(store, declared("daily", rule))
    before = (await store.run(ops.schedule_page())).schedules
    new = declared("new", rule)
    refused: list[Op[Any]] = [
        ops.put_schedules([new, declared("late", rule, ends_at=moment(now))]),
        ops.put_schedules([new, new]),
        ops.put_schedules([new, declared("daily", rule)], version=7),
        ops.drop_schedule("daily", version=7),
        ops.pause_schedule("daily", note="two\nlines"),
        ops.pause_schedule("daily", until=now - 1),
        ops.pause_schedule("nobody"),
        ops.resume_schedule("nobody"),
        ops.run_schedule("daily", "no id"),
        ops.run_schedule("nobody", new_id()),
        ops.backfill_schedule("daily", "no id", 0, now),
        ops.backfill_schedule("daily", new_id(), 0, now),
        ops.schedule_page("no cursor"),
        ops.sweep_schedules("no cursor"),
        ops.schedules(["a"] * 101),
    ]
    for op in refused:
        with pytest.raises((ScheduleConflict, UnknownSchedule, InvalidInput)):
            await store.run(op)
        assert (await store.run(ops.schedule_page())).schedules == before
    assert await tasks_of(store, "daily") == []
    assert (await store.run(ops.tick_counts())).outcomes == {}


async def test_a_change_can_be_repeated_whose_answer_was_lost(store: World) -> None:
    rule = await hourly(store)
    created = await put(store, declared("daily", rule), version=0)
    assert await put(store, declared("daily", rule), version=0) == created
    with pytest.raises(ScheduleConflict):
        await put(store, declared("daily", rule, note="another"), version=0)
    first = await put(store, declared("daily", rule, note="new"), version=1)
    assert await put(store, declared("daily", rule, note="new"), version=1) == first
    with pytest.raises(ScheduleConflict):
        await put(store, declared("daily", rule, note="newer"), version=1)


async def test_the_largest_schedule(store: World) -> None:
    """Its payload, its note and its id are as long as they may be, in characters of any kind."""
    payload = {"x": "é" * 100_000}
    schedule_id, note = "x" * 200, "\N{ROCKET}" * 1_000
    new = declared(schedule_id, await hourly(store), payload=payload, note=note)
    stored = await put(store, new)
    assert (stored.note, stored.payload) == (note, new.payload)
    await store.advance(LEAD + 1)
    assert await fire(store) == [(schedule_id, Outcome.FIRED)]
    (task_id,) = await tasks_of(store, schedule_id)
    assert (await store.task(task_id)).payload == new.payload


# -- many ------------------------------------------------------------------------------------------


async def test_pages_of_schedules_that_have_no_next_tick(store: World) -> None:
    """They all stand at the end of time, and each comes once."""
    rule = await hourly(store)
    ids = [f"s{number:02}" for number in range(25)]
    await store.run(store.ops.put_schedules([declared(each, rule) for each in ids]))
    for each in ids:
        await store.run(store.ops.pause_schedule(each))
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.schedule_page(cursor, 7))
        found += [schedule.schedule_id for schedule in page.schedules]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == ids


async def test_ticks_of_every_second(store: World) -> None:
    """They are handled one after the other, without a gap, however they fall into the steps."""
    await put(store, declared("busy", every(1), missed="all", overlap="allow", within=3_600))
    for _ in range(5):
        await store.advance(0.3)
        await fire(store)
    await store.advance(7)
    await fire(store)
    runs = (await get(store, "busy")).standing.runs
    assert {run.outcome for run in runs} == {Outcome.FIRED}
    ticks = [run.tick for run in runs]
    assert ticks == list(range(ticks[0], ticks[-1] + 1, SECOND))
    assert await clock(store) - ticks[-1] < 60 * SECOND


async def test_an_end_is_the_last_moment_at_which_it_fires(store: World) -> None:
    rule = await hourly(store)
    now = await clock(store)
    tick = now // SECOND * SECOND + LEAD * SECOND
    await put(store, declared("at", rule, ends_at=moment(tick)))
    with pytest.raises(InvalidSchedule, match="never fire"):
        await put(store, declared("before", rule, ends_at=moment(tick) - timedelta(microseconds=1)))
    await store.advance(5 * 3600)
    assert await fire(store) == [("at", Outcome.FIRED)]
    assert await store.run(store.ops.due_schedules()) is None
