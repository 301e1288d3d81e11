"""Schedules while processes die, and while others change what is being fired."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits, recurrence
from fairlane.core.documents import Written
from fairlane.core.errors import UnknownSchedule
from fairlane.core.flow import Flow, Op, writes
from fairlane.core.ids import new_id, numbered
from fairlane.core.recurrence import Cron, cron
from fairlane.core.schedules import Outcome
from fairlane.core.scheduling import KIND, Fired, stored
from fairlane.core.states import State
from fairlane.core.zones import zone_of
from tests.conformance.test_schedules import (
    HOUR,
    LEAD,
    clock,
    declared,
    fire,
    get,
    hourly,
    outcomes,
    put,
    tasks_of,
)
from tests.fixtures.steps import Killed, overtaken, stopped
from tests.fixtures.stores import World, settlement

pytestmark = pytest.mark.local


# -- a process dies between two calls --------------------------------------------------------------


async def dies(store: World, op: Op[Any], calls: int) -> bool:
    """Whether a process that dies after so many calls of an operation does so before its end."""
    try:
        await store.run(stopped(op, calls))
    except Killed:
        return True
    return False


async def whole(store: World, schedule_id: str) -> list[str]:
    """The tasks of a schedule: as many as it and the counts say."""
    tasks = await tasks_of(store, schedule_id)
    schedule = await get(store, schedule_id)
    counts = await store.run(store.ops.tick_counts())
    said = {run.task_id for run in schedule.standing.runs if run.outcome is Outcome.FIRED}
    assert set(tasks) == said
    assert len(tasks) == schedule.standing.fired == counts.outcomes.get(Outcome.FIRED, 0)
    return tasks


@pytest.mark.parametrize("overlap", ["allow", "queue", "replace"])
async def test_who_fires_dies(store: World, overlap: str) -> None:
    """Between any two calls: the tick is fired as a whole, or not at all and by the next one."""
    await put(store, declared("daily", await hourly(store), overlap=overlap))
    await store.advance(LEAD + 1)
    worker = await store.worker(lease=86_400.0)
    for calls in count():
        dead = await dies(store, store.ops.fire_due(), calls)
        await whole(store, "daily")
        await fire(store)
        tasks = await whole(store, "daily")
        assert len(tasks) == calls + 1
        if overlap != "allow":
            states = Counter([await store.state(each) for each in tasks])
            assert states[State.QUEUED] + states[State.EXECUTING] <= 1
        if not dead:
            break
        if overlap == "queue":
            await store.claim_and_settle(worker)
        await store.advance(3600)
    assert calls >= 3
    ticks = [run.tick for run in (await get(store, "daily")).standing.runs]
    assert ticks == [ticks[0] + number * HOUR for number in range(calls + 1)]


async def test_who_declares_dies(store: World) -> None:
    rule = await hourly(store)
    for calls in count():
        batch = [declared(each, rule, note=str(calls)) for each in ("a", "b")]
        op = store.ops.put_schedules(batch, owner="shop")
        dead = await dies(store, op, calls)
        found = await store.run(store.ops.schedules(["a", "b"]))
        notes = {each.note if each else None for each in found}
        assert len(notes) == 1, "all or none"
        stored = await store.run(store.ops.put_schedules(batch, owner="shop"))
        assert [each.standing.version for each in stored] == [calls + 1] * 2
        if not dead:
            break
    assert calls >= 2


@pytest.mark.parametrize("act", ["run", "backfill"])
async def test_who_runs_it_besides_its_ticks_dies(store: World, act: str) -> None:
    """And repeats it under the same id."""
    await put(store, declared("daily", await hourly(store)))
    now = await clock(store)
    expected: set[str] = set()
    for calls in count():
        first = new_id()

        def op(first: str = first) -> Op[Any]:
            if act == "run":
                return store.ops.run_schedule("daily", first)
            return store.ops.backfill_schedule("daily", first, now - 3 * HOUR, now)

        ids = {numbered(first, number) for number in range(1 if act == "run" else 3)}
        dead = await dies(store, op(), calls)
        assert set(await tasks_of(store, "daily")) in (expected, expected | ids)
        expected |= ids
        await store.run(op())
        assert set(await tasks_of(store, "daily")) == expected
        counts = await store.run(store.ops.tick_counts())
        assert counts.outcomes == {Outcome.MANUAL: len(expected)}
        if not dead:
            break
    assert calls >= 3


async def test_who_pauses_or_resumes_dies(store: World) -> None:
    await put(store, declared("daily", await hourly(store)))
    for calls in count():
        died = await dies(store, store.ops.pause_schedule("daily", note="x"), calls)
        await store.run(store.ops.pause_schedule("daily", note="x"))
        await store.advance(3600)
        dead = await dies(store, store.ops.resume_schedule("daily"), calls)
        await store.run(store.ops.resume_schedule("daily"))
        assert await outcomes(store, "daily") == [(Outcome.PAUSED, 1)] * (calls + 1)
        counts = await store.run(store.ops.tick_counts())
        assert counts.outcomes == {Outcome.PAUSED: calls + 1}
        if not (dead or died):
            break
    assert calls >= 2


# -- others are quicker ----------------------------------------------------------------------------


def meanwhile(store: World, patch: pytest.MonkeyPatch, *acts: Callable[[], Op[Any]]) -> None:
    """Let others act after the schedules that are due were read, and before anything is written."""
    overtaken(store, patch, "submit_along", "list_documents", *acts)


async def test_another_process_fires_it_first(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    meanwhile(store, monkeypatch, store.ops.fire_due)
    assert await fire(store) == []
    assert len(await whole(store, "daily")) == 1


async def test_it_is_paused_while_it_is_fired(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, declared("daily", await hourly(store)))
    await store.advance(LEAD + 1)
    meanwhile(store, monkeypatch, lambda: store.ops.pause_schedule("daily"))
    assert await fire(store) == []
    assert await whole(store, "daily") == []
    assert (await get(store, "daily")).standing.pause is not None


async def test_it_is_dropped_while_it_is_fired(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule))
    await put(store, declared("other", rule))
    await store.advance(LEAD + 1)
    meanwhile(store, monkeypatch, lambda: store.ops.drop_schedule("daily"))
    assert await fire(store) == [("other", Outcome.FIRED)]
    assert await tasks_of(store, "daily") == []
    with pytest.raises(UnknownSchedule):
        await store.run(store.ops.run_schedule("daily", new_id()))


@pytest.mark.parametrize("act", ["pause", "edit", "drop"])
async def test_a_task_that_was_not_replaced_goes_on(
    store: World, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """It was to be cancelled together with the firing, which somebody overtook."""
    rule = await hourly(store)
    await put(store, declared("daily", rule, overlap="replace"))
    await put(store, declared("other", rule, overlap="replace"))
    await store.advance(LEAD + 1)
    await fire(store)
    (task_id,) = await tasks_of(store, "daily")
    (other,) = await tasks_of(store, "other")
    await store.advance(3600)
    acts: dict[str, Callable[[], Op[Any]]] = {
        "pause": lambda: store.ops.pause_schedule("daily"),
        "edit": lambda: store.ops.put_schedules([declared("daily", rule, overlap="skip")]),
        "drop": lambda: store.ops.drop_schedule("daily"),
    }
    meanwhile(store, monkeypatch, acts[act])
    await fire(store)
    assert await store.state(task_id) is State.QUEUED
    assert await tasks_of(store, "daily") == [task_id]
    assert await store.state(other) is State.CANCELLED
    assert len(await tasks_of(store, "other")) == 2


async def test_who_replaces_a_task_dies(store: World) -> None:
    """Between any two calls: there is always one that has not ended."""
    await put(store, declared("daily", await hourly(store), overlap="replace"))
    await store.advance(LEAD + 1)
    await fire(store)
    for calls in count():
        await store.advance(3600)
        dead = await dies(store, store.ops.fire_due(), calls)
        *replaced, last = [await store.state(each) for each in await tasks_of(store, "daily")]
        assert (last, set(replaced) - {State.CANCELLED}) == (State.QUEUED, set())
        await fire(store)
        if not dead:
            break
    assert calls >= 3


async def test_a_task_that_a_refused_one_was_to_replace_goes_on(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = await hourly(store)
    await put(store, declared("daily", rule, overlap="replace"))
    await put(store, declared("good", rule, overlap="replace"))
    await store.advance(LEAD + 1)
    await fire(store)
    (task_id,) = await tasks_of(store, "daily")
    (good,) = await tasks_of(store, "good")
    await put(store, declared("daily", rule, "unheard-of", overlap="replace"))
    await store.advance(3600)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "LANES", 1)
        handled = await fire(store)
    assert sorted(handled) == [("daily", Outcome.REFUSED), ("good", Outcome.FIRED)]
    assert await store.state(task_id) is State.QUEUED
    assert await store.state(good) is State.CANCELLED


async def test_a_task_that_ended_while_it_was_replaced_stays_as_it_is(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, declared("daily", await hourly(store), overlap="replace"))
    await store.advance(LEAD + 1)
    await fire(store)
    claimed = await store.claim_one(await store.worker(lease=86_400.0))
    await store.advance(3600)
    meanwhile(store, monkeypatch, lambda: store.ops.settle([settlement(claimed)]))
    assert await fire(store) == [("daily", Outcome.FIRED)]
    assert await store.state(claimed.task_id) is State.COMPLETED


async def test_what_depends_on_a_replaced_task_ends_with_it(store: World) -> None:
    await put(store, declared("daily", await hourly(store), overlap="replace"))
    await store.advance(LEAD + 1)
    await fire(store)
    (task_id,) = await tasks_of(store, "daily")
    waiting = await store.submit("after", depends_on=[task_id])
    await store.advance(3600)
    await fire(store)
    assert await store.state(task_id) is State.CANCELLED
    assert await store.state(waiting) is State.CANCELLED


async def test_it_is_edited_while_it_is_fired(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick that is due gets the new payload; a new rule begins now."""
    rule = await hourly(store)
    later = await hourly(store, 2 * LEAD)
    for each in ("payload", "rule"):
        await put(store, declared(each, rule))
    await store.advance(LEAD + 1)
    edited = [declared("payload", rule, payload={"b": 2}), declared("rule", later)]
    meanwhile(store, monkeypatch, lambda: store.ops.put_schedules(edited))
    assert await fire(store) == [("payload", Outcome.FIRED)]
    (task_id,) = await tasks_of(store, "payload")
    assert (await store.task(task_id)).payload == b'{"b":2}'
    await store.advance(LEAD)
    assert await fire(store) == [("rule", Outcome.FIRED)]


async def test_the_task_to_wait_for_is_deleted_while_it_is_fired(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule is, too, so that the others are all that is left to be written."""
    rule = await hourly(store)
    await put(store, declared("gone", rule, "short", overlap="queue"))
    await put(store, declared("long", rule))
    await store.advance(LEAD + 1)
    await fire(store)
    worker = await store.worker(lease=86_400.0)
    short, _ = sorted(await store.claim(worker), key=lambda task: task.type != "short")
    await store.advance(3600)

    def delete() -> Op[Any]:
        return store.ops.delete([short.task_id])

    await store.start(short)
    meanwhile(
        store,
        monkeypatch,
        lambda: store.ops.cancel([short.task_id]),
        delete,
        lambda: store.ops.drop_schedule("gone"),
    )
    assert await fire(store) == [("long", Outcome.OVERLAP)]
    (other,) = store.processes(1)  # sees what was committed
    (long,) = await other.run(other.ops.schedules(["long"]))
    assert long is not None
    assert [run.outcome for run in long.standing.runs] == [Outcome.FIRED, Outcome.OVERLAP]
    assert (await other.run(other.ops.fire_due())).handled == []


async def test_eight_schedulers_and_those_who_change_what_they_fire(store: World) -> None:
    """Every tick has one task at the most, and each task stands in the schedule's runs."""
    rule = await hourly(store)
    ids = [f"s{number}" for number in range(12)]
    await store.run(
        store.ops.put_schedules([declared(each, rule, overlap="allow") for each in ids])
    )
    await store.advance(LEAD + 1)
    backends = store.processes(8)
    for lap in range(3):
        changes: list[Op[Any]] = [
            store.ops.put_schedules([declared(ids[lap], rule, note=str(lap), overlap="allow")]),
            store.ops.pause_schedule(ids[3 + lap]),
            store.ops.drop_schedule(ids[6 + lap]),
            store.ops.run_schedule(ids[9 + lap], new_id()),
        ]
        await asyncio.gather(
            *(each.run(each.ops.fire_due()) for each in backends),
            *(each.run(op) for each, op in zip(backends, changes, strict=False)),
        )
        await fire(store)
        await store.advance(3600)
    fired = 0
    for each in ids:
        tasks = [await store.task(task_id) for task_id in await tasks_of(store, each)]
        runs: list[tuple[int | None, str | None]] = []
        (found,) = await store.run(store.ops.schedules([each]))
        if found is not None:
            told = (run for run in found.standing.runs if run.task_id is not None)
            runs = [(run.tick, run.task_id) for run in told]
            assert {task.task_id for task in tasks} == {task_id for _, task_id in runs}
            fired += found.standing.fired
        assert len({tick for tick, _ in runs}) == len(runs)
    for each in ids[:3]:
        assert (await get(store, each)).standing.fired == 3
    counts = await store.run(store.ops.tick_counts())
    assert counts.outcomes[Outcome.MANUAL] == 3
    assert counts.outcomes[Outcome.FIRED] >= fired


# -- processes of several versions -----------------------------------------------------------------


@writes
def _rewrite(self: Any, schedule_id: str, old: bytes, new: bytes) -> Flow[Written]:
    _, (before,) = yield from self.read_documents(KIND, [schedule_id])
    assert old in before.value
    put = replace(before, value=before.value.replace(old, new))
    written: Written = yield from self.write_documents(KIND, [put])
    return written


async def test_what_an_older_process_cannot_read_is_fired_by_a_newer_one(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one puts it behind the others, and the newer one finds it there."""
    await put(store, declared("daily", await hourly(store)))
    newer, known = b'"type":"newer"', b'"type":"every"'
    assert await store.run(_rewrite(store.ops, "daily", known, newer)) is Written.DONE
    await store.advance(LEAD + 1)
    assert await fire(store) == []
    await store.run(store.ops.sweep_schedules())
    assert await store.run(store.ops.due_schedules()) is None
    await store.advance(2 * 3600)
    decoder = stored._said_decoder

    class Newer:
        @staticmethod
        def decode(said: bytes) -> Any:
            return decoder.decode(said.replace(newer, known))

    monkeypatch.setattr(stored, "_said_decoder", Newer)
    assert await fire(store) == []
    await store.run(store.ops.sweep_schedules())
    assert await fire(store) == [("daily", Outcome.MISSED), ("daily", Outcome.FIRED)]
    assert await outcomes(store, "daily") == [(Outcome.MISSED, 2), (Outcome.FIRED, 1)]


# -- one bad schedule ------------------------------------------------------------------------------


def nowhere() -> str:
    """The name of a time zone that is not in any cache of ticks either."""
    return f"Mars/{new_id()}"


async def test_a_zone_that_is_not_known_here_holds_up_nobody(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with newer rules has stored it, and fires it."""
    rule: Any = Cron("* * * * *", nowhere())
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        await put(store, declared("new", rule))
    await put(store, declared("old", await hourly(store)))
    await store.advance(61)
    assert await fire(store) == [("old", Outcome.FIRED)]
    assert await fire(store) == []
    await store.run(store.ops.sweep_schedules())
    await store.advance(61)
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
    assert ("new", Outcome.FIRED) in await fire(store)


async def test_what_one_process_cannot_fire_another_fires(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays due, and only the process that cannot fire it leaves it out."""
    rule: Any = Cron("* * * * *", nowhere())
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        await put(store, declared("new", rule))
    await put(store, declared("old", await hourly(store)))
    await store.advance(61)
    fired = await store.behind.run(store.behind.ops.fire_due(frozenset()))
    assert [(schedule_id, run.outcome) for schedule_id, run in fired.handled] == [
        ("old", Outcome.FIRED)
    ]
    assert set(fired.unknown) == {"new"}
    assert await store.behind.run(store.behind.ops.fire_due({"new"})) == Fired([])
    others = await store.behind.run(store.behind.ops.due_schedules({"new"}))
    assert others is not None
    assert others > 0
    wait = await store.behind.run(store.behind.ops.due_schedules())
    assert wait is not None
    assert wait < 0
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
    assert ("new", Outcome.FIRED) in await fire(store)


async def test_a_zone_gets_new_rules(store: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule: Any = cron("30 2 * * *", "Europe/Berlin")
    before = await put(store, declared("daily", rule))
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of("America/New_York"))
    monkeypatch.setattr(recurrence, "next_two", lru_cache(recurrence.next_two.__wrapped__))
    await store.run(store.ops.sweep_schedules())
    after = await get(store, "daily")
    assert after.standing.tick != before.standing.tick
    assert after.standing.version == before.standing.version
    wait = await store.run(store.ops.due_schedules())
    assert wait == pytest.approx(
        ((after.standing.tick or 0) - await clock(store)) / 1_000_000, abs=10
    )
