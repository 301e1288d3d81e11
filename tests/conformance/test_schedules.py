"""Schedules: every tick is handled once, and what was not fired is told with the reason."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from fairlane.client.schedule_declarations import declare
from fairlane.core import limits, recurrence, schedules
from fairlane.core.documents import Document, Written
from fairlane.core.errors import (
    BatchTooLarge,
    InvalidCursor,
    InvalidSchedule,
    ScheduleConflict,
    UnknownSchedule,
)
from fairlane.core.filters import new_filter
from fairlane.core.firing import upcoming
from fairlane.core.flow import perform_async, writes
from fairlane.core.ids import new_id
from fairlane.core.model import TaskError, microseconds_of, moment
from fairlane.core.outcomes import Failed
from fairlane.core.recurrence import Cron, Every, Recurrence, cron, every
from fairlane.core.retry import RetryPolicy
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Outcome,
    Overlap,
    Schedule,
    ScheduleState,
    Source,
    new_schedule,
)
from fairlane.core.scheduling import KIND, Fired
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.zones import zone_of
from tests.fixtures.stores import World

SECOND = 1_000_000
HOUR = 3600 * SECOND
LEAD = 30
"""Seconds until the first tick of a schedule that `hourly` makes."""


async def clock(store: World) -> int:
    return (await store.run(store.ops.facts())).now


async def hourly(store: World, lead: float = LEAD) -> Every:
    """A rule that fires in half a minute, and then every hour."""
    now = await clock(store)
    return every(3600, (now // SECOND + lead) % 3600)


def declared(schedule_id: str, rule: Recurrence, type: str = "work", **options: Any) -> NewSchedule:
    task = new_task(type, options.pop("payload", {"a": "é"}), **options.pop("task", {}))
    return new_schedule(schedule_id, rule, task, **options)


async def put(store: World, schedule: NewSchedule, **options: Any) -> Schedule:
    (stored,) = await store.run(store.ops.put_schedules([schedule], **options))
    return stored


async def get(store: World, schedule_id: str) -> Schedule:
    (schedule,) = await store.run(store.ops.schedules([schedule_id]))
    assert schedule is not None
    return schedule


async def outcomes(store: World, schedule_id: str) -> list[tuple[Outcome, int]]:
    return [(run.outcome, run.count) for run in (await get(store, schedule_id)).standing.runs]


async def tasks_of(store: World, schedule_id: str) -> list[str]:
    """Its tasks, the oldest first."""
    page = await store.run(store.ops.page(new_filter(schedule_id=schedule_id), 1_000))
    return [task.task_id for task in reversed(page.tasks)]


async def fire(store: World) -> list[tuple[str, Outcome]]:
    fired = await store.behind.run(store.behind.ops.fire_due())
    return [(schedule_id, run.outcome) for schedule_id, run in fired.handled]


async def test_a_tick_submits_a_task(store: World) -> None:
    rule = await hourly(store)
    before = await put(
        store,
        declared(
            "daily",
            rule,
            task={"priority": "high", "queue": "mail", "tags": {"a": "b"}, "max_retries": 7},
        ),
    )
    assert (before.standing.source, before.standing.version) == (Source.API, 1)
    wait = await store.behind.run(store.behind.ops.due_schedules())
    assert wait is not None
    assert LEAD - 10 < wait <= LEAD
    assert await fire(store) == []
    await store.advance(LEAD + 1)
    late = await store.behind.run(store.behind.ops.due_schedules())
    assert late is not None
    assert -10 < late <= 0
    assert await fire(store) == [("daily", Outcome.FIRED)]
    assert await fire(store) == []
    (task_id,) = await tasks_of(store, "daily")
    task = await store.task(task_id)
    assert (task.type, task.queue, task.level, task.max_retries) == ("work", "mail", 8, 7)
    assert (task.payload, task.tags, task.schedule_id) == (
        '{"a":"é"}'.encode(),
        {"a": "b"},
        "daily",
    )
    after = await get(store, "daily")
    assert after.standing.tick == (before.standing.tick or 0) + HOUR
    assert (after.standing.last_at, after.standing.last_task) == (before.standing.tick, task_id)
    assert (after.standing.fired, after.standing.version) == (1, 1)
    (run,) = after.standing.runs
    assert (run.tick, run.task_id) == (before.standing.tick, task_id)


async def test_the_handler_knows_the_tick(store: World) -> None:
    schedule = await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    await fire(store)
    task = await store.claim_one(await store.worker())
    spec = task.spec
    assert (spec.tick, spec.zone, spec.schedule_id) == (schedule.standing.tick, "UTC", "daily")
    assert (await store.task(task.task_id)).scheduled_for == moment(schedule.standing.tick or 0)


async def test_many_schedulers_fire_every_tick_once(store: World) -> None:
    ids = [f"s{number}" for number in range(30)]
    rule = await hourly(store)
    for start in range(0, 30, 10):
        batch = [declared(each, rule, overlap="allow") for each in ids[start : start + 10]]
        await store.run(store.ops.put_schedules(batch))
    for seconds in (LEAD + 1, 3600, 3600, 3600):
        await store.advance(seconds)
        backends = store.behind.processes(4)
        await asyncio.gather(*(each.run(each.ops.fire_due()) for each in backends))
    for each in ids:
        assert await outcomes(store, each) == [(Outcome.FIRED, 1)] * 4
        assert len(await tasks_of(store, each)) == 4
    counts = await store.behind.run(store.behind.ops.tick_counts())
    assert counts.outcomes == {Outcome.FIRED: 120}
    assert sum(counts.lags) == 120


async def test_the_same_again_moves_nothing(store: World) -> None:
    """Twenty processes start at once, with and without a change."""
    rule = await hourly(store)
    first = await put(store, declared("daily", rule), owner="shop")
    await store.advance(LEAD + 1)  # a tick is due while they start
    backends = store.processes(5)

    async def boot(schedule: NewSchedule) -> None:
        await asyncio.gather(
            *(
                each.run(each.ops.put_schedules([schedule], owner="shop"))
                for each in backends
                for _ in range(4)
            )
        )

    await boot(declared("daily", rule))
    assert await get(store, "daily") == first
    await boot(declared("daily", rule, payload={"b": 1}))
    changed = await get(store, "daily")
    assert (changed.payload, changed.standing.version) == (b'{"b":1}', 2)
    assert changed.standing.tick == first.standing.tick  # another payload loses no tick
    assert await fire(store) == [("daily", Outcome.FIRED)]


async def test_a_declaration_is_the_same_on_every_way(store: World) -> None:
    options = {"timeout_seconds": 600, "retry_policy": RetryPolicy(), "tags": {"a": "b"}}
    schedule = declared("daily", cron("0 4 * * *", "Asia/Tokyo"), task=options, within=86_400)
    first = await put(store, schedule, owner="shop")
    assert first.standing.fingerprint == schedule.fingerprint
    behind = store.behind
    (again,) = await behind.run(behind.ops.put_schedules([schedule], owner="shop"))
    assert (again.standing.version, again.template) == (1, first.template)


async def test_another_rule_goes_on_from_now(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.advance(7200)
    changed = await put(store, declared("daily", await hourly(store, 60)))
    assert await fire(store) == []
    assert changed.standing.tick is not None
    assert 0 < changed.standing.tick - await clock(store) <= 61 * SECOND


async def test_only_what_is_seen_costs_a_write(store: World) -> None:
    schedule = declared("daily", await hourly(store))
    first = await put(store, schedule, owner="shop")
    await store.advance(limits.SCHEDULE_SEEN_SECONDS + 1)
    again = await put(store, schedule, owner="shop")
    assert again.standing.seen_at > first.standing.seen_at
    assert again.standing.version == 1


async def test_versions_are_compared(store: World) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule), version=0)
    with pytest.raises(ScheduleConflict, match="version 1, not 0"):
        await put(store, declared("daily", rule, note="other"), version=0)
    assert (await put(store, declared("daily", rule, note="other"), version=1)).note == "other"
    with pytest.raises(ScheduleConflict):
        await store.run(store.ops.drop_schedule("daily", version=1))
    assert await store.run(store.ops.drop_schedule("daily", version=2))
    assert not await store.run(store.ops.drop_schedule("daily"))
    assert await store.run(store.ops.schedules(["daily"])) == [None]


async def test_nobody_else_changes_what_code_declares(store: World) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule), owner="shop")
    with pytest.raises(ScheduleConflict, match="code of shop"):
        await put(store, declared("daily", rule, note="mine"))
    with pytest.raises(ScheduleConflict):  # and not "this is repeated"
        await put(store, declared("daily", rule), version=0)
    assert (await store.run(store.ops.pause_schedule("daily"))).standing.pause is not None


async def test_code_takes_over_nothing_that_was_made_by_hand(store: World) -> None:
    rule = await hourly(store)
    made = await put(store, declared("mine", rule))
    for version in (None, 0, 1):
        new = [declared(each, rule) for each in ("a", "mine", "b")]
        with pytest.raises(ScheduleConflict):
            await store.run(store.ops.put_schedules(new, owner="shop", version=version))
    assert await store.run(store.ops.schedules(["a", "mine", "b"])) == [None, made, None]


async def test_the_others_of_a_declaration_count_all_the_same(
    store: World, caplog: pytest.LogCaptureFixture
) -> None:
    rule = await hourly(store)
    made = await put(store, declared("mine", rule, note="by hand"))
    new = [declared(each, rule) for each in ("a", "mine", "b")]
    with caplog.at_level(logging.WARNING, "fairlane.schedules"):
        await perform_async(declare(store.ops, "shop", new), store.run)
    (record,) = caplog.records
    assert "The schedule mine is not declared" in record.getMessage()
    assert "fairlane schedule delete mine" in record.getMessage()
    assert await get(store, "mine") == made
    owners = [(await get(store, each)).standing.owner for each in ("a", "b")]
    assert owners == ["shop", "shop"]


async def test_that_another_application_takes_one_over_is_recorded(store: World) -> None:
    rule = await hourly(store)
    for owner in ("shop", "shop", "office", "office"):
        await put(store, declared("daily", rule), owner=owner)
    page = await store.behind.run(store.behind.ops.audit(10))
    taken = [each for each in page.entries if each.action == "schedule.take"]
    assert [(each.actor, each.subject) for each in taken] == [("code:office", "daily")]
    assert json.loads(taken[0].detail) == {"owner": "office", "before": "shop"}


async def test_what_code_no_longer_declares_is_dropped_after_a_day(store: World) -> None:
    rule = await hourly(store)
    await put(store, declared("old", rule), owner="shop")
    await put(store, declared("api", rule))
    await put(store, declared("other", rule), owner="elsewhere")
    for hours in (12, 13):
        await store.advance(hours * 3600)
        await put(store, declared("new", rule), owner="shop")
        await store.advance(61)
        assert await store.behind.run(store.behind.ops.sweep_schedules()) is None
        found = await store.run(store.ops.schedule_page())
        ids = {schedule.schedule_id for schedule in found.schedules}
        # Nobody declares anything for `elsewhere`: that may be an outage.
        assert ids == {"new", "api", "other"} | ({"old"} if hours == 12 else set())


@pytest.mark.local
async def test_an_application_may_declare_nothing_any_more(store: World) -> None:
    await put(store, declared("old", await hourly(store)), owner="shop")
    await store.advance(25 * 3600)
    assert await store.run(store.ops.schedules([])) == []
    assert await store.run(store.ops.put_schedules([], owner="shop")) == []
    assert await store.run(store.ops.sweep_schedules()) is None
    assert await store.run(store.ops.schedules(["old"])) != [None]  # it may still be declared
    await store.advance(61)
    assert await store.run(store.ops.sweep_schedules()) is None
    assert await store.run(store.ops.schedules(["old"])) == [None]


@pytest.mark.parametrize("odd", ["", "a b", "\0", "\udcff", "#ticks", "é", "x" * 201, "..%2f"])
async def test_nothing_is_called_so(store: World, odd: str) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule))
    found = await store.run(store.ops.schedules(["daily", odd]))
    assert [schedule is None for schedule in found] == [False, True]
    assert await store.run(store.ops.schedules([odd])) == [None]
    assert await store.run(store.ops.schedules([])) == []
    assert not await store.run(store.ops.drop_schedule(odd))
    now = await clock(store)
    for op in (
        store.ops.pause_schedule(odd),
        store.ops.resume_schedule(odd),
        store.ops.run_schedule(odd, new_id()),
        store.ops.backfill_schedule(odd, new_id(), now - HOUR, now),
    ):
        with pytest.raises(UnknownSchedule):
            await store.run(op)
    with pytest.raises(InvalidSchedule, match="application"):
        await put(store, declared("other", rule), owner=odd.replace("x", " "))
    with pytest.raises(InvalidSchedule, match="A note"):
        await store.run(store.ops.pause_schedule("daily", note=odd + "\n"))
    page = await store.run(store.ops.schedule_page())
    assert [schedule.standing.pause for schedule in page.schedules] == [None]


async def test_an_address_of_the_api_is_no_id(store: World) -> None:
    with pytest.raises(InvalidSchedule, match="No schedule can have the id preview"):
        declared("preview", await hourly(store))
    assert await store.run(store.ops.schedules(["preview"])) == [None]
    with pytest.raises(UnknownSchedule):
        await store.run(store.ops.pause_schedule("preview"))


async def test_a_pause_survives_a_deployment(store: World) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule), owner="shop")
    paused = await store.run(store.ops.pause_schedule("daily", note="migration"))
    assert paused.standing.pause is not None
    assert paused.standing.pause.note == "migration"
    changed = await put(store, declared("daily", rule, payload={}), owner="shop")
    assert changed.standing.pause == paused.standing.pause
    await store.advance(3 * 3600)
    assert await store.behind.run(store.behind.ops.due_schedules()) is None
    assert await fire(store) == []
    resumed = await store.run(store.ops.resume_schedule("daily"))
    assert resumed.standing.pause is None
    assert await outcomes(store, "daily") == [(Outcome.PAUSED, 3)]
    assert await tasks_of(store, "daily") == []
    assert (await store.behind.run(store.behind.ops.tick_counts())).outcomes == {Outcome.PAUSED: 3}
    await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.FIRED)]


async def test_a_pause_may_end_by_itself(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    until = await clock(store) + 2 * HOUR
    await store.run(store.ops.pause_schedule("daily", until=until))
    await store.advance(2 * 3600 + LEAD + 1)
    assert await fire(store) == [("daily", Outcome.PAUSED), ("daily", Outcome.FIRED)]
    assert await outcomes(store, "daily") == [(Outcome.PAUSED, 2), (Outcome.FIRED, 1)]
    with pytest.raises(InvalidSchedule, match="in the past"):
        await store.run(store.ops.pause_schedule("daily", until=until))


@pytest.mark.parametrize(("missed", "fired"), [(Missed.ONCE, 1), (Missed.ALL, 3)])
async def test_ticks_of_a_pause_can_be_caught_up(store: World, missed: Missed, fired: int) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.run(store.ops.pause_schedule("daily"))
    await store.advance(3 * 3600)
    await store.run(store.ops.resume_schedule("daily", missed=missed))
    await fire(store)
    counted = Counter(dict(await outcomes(store, "daily")))
    assert len(await tasks_of(store, "daily")) == fired
    assert counted[Outcome.MISSED] == 3 - fired


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", [(Outcome.MISSED, 5)]),
        ("once", [(Outcome.MISSED, 4), (Outcome.FIRED, 1)]),
        ("all", [(Outcome.MISSED, 2), *[(Outcome.FIRED, 1)] * 3]),
    ],
)
async def test_ticks_that_nobody_fired(store: World, missed: str, expected: list[Any]) -> None:
    """Of five, the oldest two lie outside of the window."""
    await put(store, declared("daily", await hourly(store), missed=missed, within=3 * 3600 - 60))
    await store.advance(5 * 3600 - 120 + LEAD)
    await fire(store)
    assert await outcomes(store, "daily") == expected


async def test_a_million_missed_ticks_are_cut(store: World) -> None:
    await put(store, declared("busy", every(1), missed="all", most=5, within=20 * 86_400))
    await store.advance(1_000_000)
    await fire(store)
    assert len(await tasks_of(store, "busy")) == 5
    missed, *fired = (await get(store, "busy")).standing.runs
    assert (missed.outcome, [run.outcome for run in fired]) == (Outcome.MISSED, [Outcome.FIRED] * 5)
    assert missed.count >= 999_990
    assert fired[-1].tick > await clock(store) - 10 * SECOND


async def test_missed_ticks_run_one_after_the_other(store: World) -> None:
    await put(store, declared("daily", await hourly(store), missed="all"))
    await store.advance(3 * 3600)
    await fire(store)
    first, second, third = await tasks_of(store, "daily")
    worker = await store.worker()
    for expected in (first, second, third):
        (task,) = await store.claim(worker)
        assert task.task_id == expected
        await store.settle(task, Failed(TaskError("no", retriable=False)))


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_a_task_that_has_not_ended(store: World, overlap: Overlap) -> None:
    await put(store, declared("daily", await hourly(store), overlap=overlap))
    await store.advance(LEAD + 1)
    await fire(store)
    worker = await store.worker(lease=86_400)
    running = await store.claim_one(worker)
    await store.advance(3600)
    await fire(store)
    await store.advance(3600)
    await fire(store)
    states = [await store.state(each) for each in await tasks_of(store, "daily")]
    runs = [outcome for outcome, _ in await outcomes(store, "daily")]
    match overlap:
        case Overlap.SKIP:
            assert states == [State.EXECUTING]
            assert runs == [Outcome.FIRED, Outcome.OVERLAP, Outcome.OVERLAP]
        case Overlap.QUEUE:
            assert states == [State.EXECUTING, State.SCHEDULED]
            assert runs == [Outcome.FIRED, Outcome.FIRED, Outcome.OVERLAP]
            await store.settle(running)
            assert len(await store.claim(worker)) == 1
        case Overlap.REPLACE:
            assert states == [State.CANCELLED, State.CANCELLED, State.QUEUED]
            assert runs == [Outcome.FIRED] * 3
        case Overlap.ALLOW:
            assert states == [State.EXECUTING, State.QUEUED, State.QUEUED]
            assert runs == [Outcome.FIRED] * 3


async def test_a_task_that_is_retried_overlaps(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    await fire(store)
    await store.claim_and_settle(await store.worker(), Failed(TaskError("later"), after=86_000))
    await store.advance(3600)
    await fire(store)
    assert await outcomes(store, "daily") == [(Outcome.FIRED, 1), (Outcome.OVERLAP, 1)]


async def test_a_last_task_that_was_deleted_has_ended(store: World) -> None:
    await put(store, declared("daily", await hourly(store), overlap="queue"))
    await store.advance(LEAD + 1)
    await fire(store)
    task = await store.claim_and_settle(await store.worker())
    await store.run(store.ops.delete([task.task_id]))
    await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.FIRED)]


async def test_a_schedule_that_keeps_failing_is_paused(store: World) -> None:
    await put(store, declared("daily", await hourly(store), pause_after_failures=2))
    worker = await store.worker(lease=86_400)
    await store.advance(LEAD + 1)
    for _ in range(2):
        assert await fire(store) == [("daily", Outcome.FIRED)]
        await store.claim_and_settle(worker, Failed(TaskError("no", retriable=False)))
        await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.PAUSED)]
    paused = (await get(store, "daily")).standing
    assert paused.pause is not None
    assert "2 tasks had failed" in paused.pause.note
    await store.run(store.ops.resume_schedule("daily"))
    await store.advance(3600)
    assert await fire(store) == [("daily", Outcome.FIRED)]


async def test_a_count_and_an_end(store: World) -> None:
    rule = await hourly(store)
    ends_at = moment(await clock(store)) + timedelta(hours=2)
    await put(store, declared("twice", rule, count=2, overlap="allow"))
    await put(store, declared("until", rule, ends_at=ends_at, overlap="allow"))
    await store.advance(LEAD + 1)
    for _ in range(4):
        await fire(store)
        await store.advance(3600)
    for each in ("twice", "until"):
        assert len(await tasks_of(store, each)) == 2
        assert (await get(store, each)).standing.tick is None
    assert await store.behind.run(store.behind.ops.due_schedules()) is None
    with pytest.raises(InvalidSchedule, match="never fire"):
        await put(store, declared("late", rule, ends_at=ends_at))


async def test_a_start(store: World) -> None:
    starts_at = moment(await clock(store)) + timedelta(hours=3)
    schedule = await put(store, declared("later", await hourly(store), starts_at=starts_at))
    assert (schedule.standing.tick or 0) >= microseconds_of(starts_at)
    await store.advance(2 * 3600)
    assert await fire(store) == []


async def test_jitter_is_the_same_for_everybody(store: World) -> None:
    rule = await hourly(store)
    schedules = [declared(f"s{number}", rule, jitter=600) for number in range(20)]
    await store.run(store.ops.put_schedules(schedules))
    await store.advance(LEAD + 300)
    first = {schedule_id for schedule_id, _ in await fire(store)}
    await store.advance(301)
    rest = {schedule_id for schedule_id, _ in await fire(store)}
    assert first
    assert rest
    assert len(first) + len(rest) == 20


async def test_a_clock_that_is_set_fires_nothing_twice(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    await fire(store)
    await store.claim_and_settle(await store.worker())
    await store.set_clock(-3600)
    assert await fire(store) == []
    await store.set_clock(3600)
    assert await fire(store) == []
    await store.set_clock(3 * 3600)
    await fire(store)
    assert await outcomes(store, "daily") == [
        (Outcome.FIRED, 1),
        (Outcome.MISSED, 2),
        (Outcome.FIRED, 1),
    ]


async def test_running_besides_the_ticks(store: World) -> None:
    before = await put(store, declared("daily", await hourly(store)))
    task_id = new_id()
    for _ in range(2):  # the answer was lost
        assert await store.run(store.ops.run_schedule("daily", task_id)) == task_id
    assert await tasks_of(store, "daily") == [task_id]
    after = await get(store, "daily")
    assert after.standing.tick == before.standing.tick
    assert [run.outcome for run in after.standing.runs] == [Outcome.MANUAL]
    with pytest.raises(UnknownSchedule):
        await store.run(store.ops.run_schedule("nobody", new_id()))


async def test_backfilling(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    now = await clock(store)
    first = new_id()
    day = ("daily", first, now - 24 * HOUR, now)
    found = await store.run(store.ops.backfill_schedule(*day))
    assert await store.run(store.ops.backfill_schedule(*day)) == found
    assert await tasks_of(store, "daily") == found
    assert (len(found), found[0]) == (24, first)
    worker = await store.worker()
    ticks = []
    for _ in range(24):
        (task,) = await store.claim(worker)
        ticks.append(task.spec.tick)
        await store.settle(task)
    assert ticks == sorted(ticks)  # type: ignore[type-var]
    at_once = await store.run(
        store.ops.backfill_schedule("daily", new_id(), now - 5 * HOUR, now, overlap=Overlap.ALLOW)
    )
    assert len(await store.claim(worker)) == len(at_once) == 5
    with pytest.raises(InvalidSchedule, match=r"backfill up to now"):
        await store.run(store.ops.backfill_schedule("daily", new_id(), now, now + 9 * HOUR))
    with pytest.raises(InvalidSchedule, match=r"More than 1,000 ticks"):
        await store.run(store.ops.backfill_schedule("daily", new_id(), now - 1_001 * HOUR, now))


async def test_a_schedule_that_is_refused_does_not_hold_up_others(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = await hourly(store)
    await store.submit("work")
    await store.run(
        store.ops.put_schedules(
            [declared("bad", rule, "unheard-of"), declared("good", rule), declared("odd", rule)]
        )
    )
    await store.advance(LEAD + 1)
    monkeypatch.setattr(limits, "LANES", 1)
    handled = await fire(store)
    monkeypatch.undo()
    assert sorted(handled) == [
        ("bad", Outcome.REFUSED),
        ("good", Outcome.FIRED),
        ("odd", Outcome.FIRED),
    ]
    (run,) = (await get(store, "bad")).standing.runs
    assert "too_many_lanes" in run.reason
    skip = (await store.behind.run(store.behind.ops.tick_counts())).recent[-1]
    assert (skip.number, skip.schedule_id, skip.run) == (1, "bad", run)
    await store.advance(3600)
    assert ("bad", Outcome.FIRED) in await fire(store)


async def test_documents_that_cannot_be_read_hold_up_nobody(store: World) -> None:
    """Such as those that another version of Fairlane has written."""

    @writes
    def damage(self: Any) -> Any:
        return (yield from self.write_documents(KIND, [Document("old", b"[1]\n{}", 0)]))

    assert await store.behind.run(damage(store.behind.ops)) is Written.DONE
    await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    assert await fire(store) == [("daily", Outcome.FIRED)]
    assert await store.run(store.ops.schedules(["old"])) == [None]
    with pytest.raises(UnknownSchedule):
        await store.run(store.ops.pause_schedule("old"))


async def test_a_zone_that_is_not_known_here_can_be_read(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with newer rules has stored it."""
    rule: Any = Cron("0 3 * * *", "Mars/Olympus")
    with monkeypatch.context() as patch:
        for module in (recurrence, schedules):
            patch.setattr(module, "zone_of", lambda _: zone_of("UTC"))
        before = await put(store, declared("new", rule))
        assert before.problem is None
    await put(store, declared("old", await hourly(store)))
    page = await store.run(store.ops.schedule_page())
    found = {each.schedule_id: each for each in page.schedules}
    assert found["old"].problem is None
    assert "The time zone 'Mars/Olympus' is not known here" in (found["new"].problem or "")
    assert await get(store, "new") == found["new"] == before
    assert upcoming(before, 5) == []
    paused = await store.run(store.ops.pause_schedule("new", note="until it is known"))
    assert (paused.state, paused.problem) == (ScheduleState.PAUSED, before.problem)
    with pytest.raises(InvalidSchedule, match="no time zone"):
        await store.run(store.ops.resume_schedule("new"))
    assert await get(store, "new") == paused
    assert await store.run(store.ops.drop_schedule("new"))


async def test_a_schedule_that_changes_while_it_is_fired(store: World) -> None:
    """A process that decided by what the schedule was before begins again."""
    rule = await hourly(store)
    await put(store, declared("daily", rule))
    await store.advance(LEAD + 1)
    (one,), (other,) = store.processes(1), store.behind.processes(1)
    await asyncio.gather(
        one.run(one.ops.put_schedules([declared("daily", rule, payload={"b": 2})])),
        other.run(other.ops.fire_due()),
    )
    await fire(store)
    (task_id,) = await tasks_of(store, "daily")
    schedule = await get(store, "daily")
    assert (schedule.standing.last_task, schedule.payload) == (task_id, b'{"b":2}')


async def test_pages_of_schedules(store: World) -> None:
    rule = await hourly(store)
    for start in range(0, 250, 50):
        await store.run(
            store.ops.put_schedules(
                [declared(f"s{number:03}", rule) for number in range(start, start + 50)]
            )
        )
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.schedule_page(cursor, 40))
        found += [schedule.schedule_id for schedule in page.schedules]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == [f"s{number:03}" for number in range(250)]
    for bad in ("", "x", "1", "1:", "1:a b", "9" * 30 + ":a"):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.schedule_page(bad))


async def test_runs_are_bounded(store: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEDULE_RUNS", 3)
    await put(store, declared("daily", await hourly(store), overlap="allow"))
    await store.advance(LEAD + 1)
    for _ in range(5):
        await fire(store)
        await store.advance(3600)
    standing = (await get(store, "daily")).standing
    assert (len(standing.runs), standing.fired) == (3, 5)


async def test_runs_that_are_kept_elsewhere(store: World) -> None:
    """Where they are stored is nobody's business: reading gives all of them, in their order."""
    policy: dict[str, Any] = {"missed": "all", "within": 20 * 86_400, "overlap": "allow"}
    before = await put(store, declared("daily", await hourly(store), **policy))
    first = before.standing.tick or 0
    await store.advance(LEAD + 1)
    for hours in (30, 30, 5, 60):
        await store.advance(hours * 3600)
        await fire(store)
        schedule = await get(store, "daily")
        standing = schedule.standing
        expected = [first + HOUR * number for number in range(standing.fired)]
        assert [run.tick for run in standing.runs] == expected[-limits.SCHEDULE_RUNS :]
        assert (await store.run(store.ops.schedule_page())).schedules == [schedule]
    task_id = new_id()
    for _ in range(2):
        await store.run(store.ops.run_schedule("daily", task_id))
    runs = (await get(store, "daily")).standing.runs
    assert [run.task_id for run in runs].count(task_id) == 1
    changed = await put(store, declared("daily", await hourly(store), **policy, note="new"))
    assert changed.standing.runs == runs
    await store.run(store.ops.drop_schedule("daily"))
    again = await put(store, declared("daily", await hourly(store), **policy))
    assert again.standing.runs == (await get(store, "daily")).standing.runs == ()


async def test_many_that_are_due_are_fired_in_parts(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCHEDULE_PAGE", 4)
    monkeypatch.setattr(limits, "BATCH", 8)
    rule = await hourly(store)
    for start in range(0, 18, 3):
        numbers = range(start, start + 3)
        batch = [declared(f"s{number}", rule) for number in numbers]
        await store.run(store.ops.put_schedules(batch))
    await store.advance(LEAD + 1)
    parts = [await store.behind.run(store.behind.ops.fire_due()) for _ in range(3)]
    assert [(len(part.handled), part.more) for part in parts] == [(8, True), (8, True), (2, False)]


async def test_many_that_catch_up_are_fired_in_parts(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as fit into one submission, and no tick of theirs is lost."""
    rule = await hourly(store)
    policy: dict[str, Any] = {"missed": "all", "most": 20, "within": 20 * 86_400}
    many = [declared(f"s{number}", rule, **policy) for number in range(7)]
    await store.run(store.ops.put_schedules(many))
    await store.advance(30 * 3600)
    monkeypatch.setattr(limits, "SUBMIT_BATCH", 50)
    parts = [await store.behind.run(store.behind.ops.fire_due()) for _ in range(4)]
    tasks = [sum(run.outcome is Outcome.FIRED for _, run in part.handled) for part in parts]
    assert (tasks, [part.more for part in parts]) == ([40, 40, 40, 20], [True, True, True, False])
    monkeypatch.undo()
    for each in many:
        assert len(await tasks_of(store, each.schedule_id)) == 20
        runs = await outcomes(store, each.schedule_id)
        assert runs == [(Outcome.MISSED, 10), *[(Outcome.FIRED, 1)] * 20]


async def test_nothing_is_put_in_order_where_nothing_is(store: World) -> None:
    assert await store.behind.run(store.behind.ops.sweep_schedules()) is None
    assert await store.behind.run(store.behind.ops.fire_due()) == Fired([])


async def test_there_is_a_limit_to_schedules(store: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEDULES", 1)
    rule = await hourly(store)
    await put(store, declared("a", rule))
    await put(store, declared("a", rule, note="again"))
    with pytest.raises(InvalidSchedule, match="At most 1 schedules"):
        await store.run(store.ops.put_schedules([declared("b", rule), declared("c", rule)]))
    monkeypatch.undo()
    with pytest.raises(BatchTooLarge):
        await store.run(store.ops.put_schedules([declared("b", rule)] * 101))
    page = await store.run(store.ops.schedule_page())
    assert [schedule.schedule_id for schedule in page.schedules] == ["a"]
