"""The journal tells every transition in order; the counters are what a recount finds."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter

import pytest

from fairlane.core.errors import InvalidCursor
from fairlane.core.model import Beat, Event, TaskError, WorkerStatus
from fairlane.core.outcomes import Completed, Failed, Outcome, Released, Snoozed
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import BUCKETS, census
from tests.fixtures.counters import depths, tallies
from tests.fixtures.stores import World, settlement


async def history(store: World) -> list[Event]:
    found: list[Event] = []
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.events(cursor, 100))
        found += page.events
        if not page.events:
            return found
        cursor = page.cursor


async def test_the_life_of_a_task_in_the_journal(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit("t", queue="q", priority=7)
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=0))
    await store.claim_and_settle(worker, Snoozed(0))
    await store.claim_and_settle(worker, Released())
    await store.claim_and_settle(worker, Completed(b"1"))
    events = [event for event in await history(store) if event.task_id == task_id]
    assert [event.verb for event in events] == [
        "submit",
        "claim",
        "retry",
        "due",
        "claim",
        "snooze",
        "due",
        "claim",
        "release",
        "claim",
        "complete",
    ]
    assert [event.attempt for event in events] == [0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert all((event.type, event.queue, event.level) == ("t", "q", 7) for event in events)
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert events[1].worker_id == events[-1].worker_id == worker
    assert events[-1].seconds == 0.01


async def test_other_ends_in_the_journal(store: World) -> None:
    worker = await store.worker()
    failed = await store.submit()
    await store.claim_and_settle(worker, Failed(TaskError("x", retriable=False)))
    dead = await store.submit(max_retries=0)
    await store.claim_and_settle(worker, Failed(TaskError("x")))
    cancelled = await store.submit()
    await store.run(store.ops.cancel([cancelled]))
    await store.run(store.ops.replay([dead]))
    told: dict[str, list[str]] = {}
    for event in await history(store):
        if event.task_id:
            told.setdefault(event.task_id, []).append(event.verb)
    assert told[failed] == ["submit", "claim", "fail"]
    assert told[dead] == ["submit", "claim", "dead_letter", "replay"]
    assert told[cancelled] == ["submit", "cancel"]


async def test_workers_in_the_journal(store: World) -> None:
    leaving, dying = await store.worker(), await store.worker(lease=10)
    for status in (None, WorkerStatus.UNHEALTHY, WorkerStatus.UNHEALTHY, WorkerStatus.ACTIVE):
        await store.run(store.ops.heartbeat(Beat(leaving, status=status)))
    await store.run(store.ops.forget(leaving))
    await store.advance(11)
    await store.reap()
    events = [(event.verb, event.worker_id) for event in await history(store)]
    assert events == [
        ("worker_joined", leaving),
        ("worker_joined", dying),
        ("worker_unhealthy", leaving),
        ("worker_active", leaving),
        ("worker_left", leaving),
        ("worker_dead", dying),
    ]


async def test_reading_goes_on_after_a_cursor(store: World) -> None:
    for _ in range(5):
        await store.submit()
    everything = await history(store)
    assert len(everything) == 5
    rest = await store.run(store.ops.events(everything[2].cursor, 100))
    assert (rest.events, rest.reset) == (everything[3:], False)
    assert rest.cursor == everything[-1].cursor
    end = await store.run(store.ops.events(everything[-1].cursor, 100))
    assert (end.events, end.cursor, end.reset) == ([], everything[-1].cursor, False)
    for forged in ("not a cursor", "", "-1", "1-", "-1-1", "9" * 40, "t" + "0" * 32, "1-1\n", "١"):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.events(forged, 100))


async def test_reading_the_news(store: World) -> None:
    """A reader that wants only what is yet to come begins at the tail, also of an empty store."""
    nothing = await store.run(store.ops.tail())
    first = await store.submit()
    page = await store.run(store.ops.events(nothing, 100))
    assert [event.task_id for event in page.events] == [first]
    tail = await store.run(store.ops.tail())
    assert tail == page.cursor
    assert (await store.run(store.ops.events(tail, 100))).events == []
    second = await store.submit()
    news = await store.run(store.ops.events(tail, 100))
    assert [event.task_id for event in news.events] == [second]
    assert not news.reset


async def test_a_reader_who_stayed_away_too_long_is_told(store: World) -> None:
    await store.submit()
    early = await store.run(store.ops.events(None, 100))
    for _ in range(2):
        await store.advance(3_600)
        await store.submit()
    await store.advance(3_600)
    last = await store.submit()
    await store.behind.run(store.behind.ops.prune(Retention(journal=1_800)))
    missed = await store.run(store.ops.events(early.cursor, 100))
    assert missed.reset
    assert [event.task_id for event in missed.events] == [last]
    begun = await store.run(store.ops.events(None, 100))
    assert (begun.events, begun.reset) == (missed.events, False)
    await store.advance(3_600)
    await store.behind.run(store.behind.ops.prune(Retention(journal=1_800)))
    emptied = await store.run(store.ops.events(early.cursor, 100))
    assert (emptied.events, emptied.reset) == ([], True)
    after_all = await store.run(store.ops.events(emptied.cursor, 100))
    assert (after_all.events, after_all.reset) == ([], False)


async def test_a_cursor_from_the_future_gets_a_reset(store: World) -> None:
    """The store was replaced by an older copy, or another one: its journal is not that far yet."""
    first = await store.submit()
    tail = await store.run(store.ops.tail())
    future = re.sub(r"[1-9][0-9]*", lambda number: number[0] + "000000", tail)
    assert future != tail
    found = await store.run(store.ops.events(future, 100))
    assert ([event.task_id for event in found.events], found.reset) == ([first], True)
    assert found.cursor == tail
    second = await store.submit()
    news = await store.run(store.ops.events(found.cursor, 100))
    assert ([event.task_id for event in news.events], news.reset) == ([second], False)


async def test_counters_are_what_a_recount_finds(store: World) -> None:
    """A random life for 150 tasks; then every counter is compared with the tasks themselves."""
    rng = random.Random(11)
    worker = await store.worker(lease=80_000)
    ids: list[str] = []
    for _ in range(40):
        match rng.randrange(5):
            case 0 | 1:
                ids += await store.submit_all(
                    [
                        new_task(
                            rng.choice("ab"),
                            queue=rng.choice("xy"),
                            priority=rng.randrange(11),
                            max_retries=1,
                            delay_seconds=rng.choice([0, 0, 30]),
                        )
                        for _ in range(rng.randrange(1, 15))
                    ]
                )
            case 2:
                claimed = await store.claim(worker, rng.randrange(1, 12))
                outcomes: list[Outcome] = [
                    Completed(b"1"),
                    Completed(b"1"),
                    Failed(TaskError("x")),
                    Failed(TaskError("x", retriable=False)),
                    Released(),
                    Snoozed(3),
                ]
                await store.run(
                    store.ops.settle(
                        [settlement(task, rng.choice(outcomes)) for task in claimed[1:]]
                    )
                )
            case 3:
                await store.advance(rng.choice([1, 40]))
            case 4 if ids:
                some = rng.sample(ids, min(4, len(ids)))
                await store.run(store.ops.cancel(some[:2]))
                await store.run(store.ops.replay(some[2:], level=rng.choice([None, 9])))
    tasks = [task for task in await store.run(store.ops.get(ids)) if task]
    recount: dict[State, int] = {}
    queued: dict[tuple[str, int], int] = {}
    for task in tasks:
        recount[task.status] = recount.get(task.status, 0) + 1
        if task.status is State.QUEUED:
            key = (task.queue, task.priority)
            queued[key] = queued.get(key, 0) + 1
    assert len(tasks) == len(ids)
    assert len(recount) >= 5
    assert await store.census() == recount
    assert await store.run(depths(store.ops)) == queued
    by_level: dict[tuple[int, State], int] = {}
    for task in tasks:
        by_level[task.priority, task.status] = by_level.get((task.priority, task.status), 0) + 1
    counters = await store.run(tallies(store.ops))
    for level in range(11):
        counted = census(tally for tally in counters if tally.key.level == level)
        assert {(level, state): n for state, n in counted.items() if n} == {
            key: n for key, n in by_level.items() if key[0] == level
        }


async def test_durations_are_counted_in_buckets(store: World) -> None:
    worker = await store.worker()
    for seconds in (0.001, 0.2, 0.2, 5_000.0):
        await store.submit()
        await store.settle(await store.claim_one(worker), Completed(b"1"), seconds)
    ends = [
        tally
        for tally in await store.run(tallies(store.ops))
        if tally.key.target == State.COMPLETED.code
    ]
    assert {tally.key.bucket: tally.times for tally in ends} == {0: 1, 5: 2, len(BUCKETS): 1}
    assert sum(tally.seconds for tally in ends) == pytest.approx(5_000.401)


async def test_waits_until_claims_are_counted_in_buckets(store: World) -> None:
    worker = await store.worker(lease=10_000)
    for type, waits in (("a", 2_000), ("b", 2_000), ("a", 20), ("a", 0)):
        await store.submit(type, priority="high")
        await store.submit(type, priority="high")
        await store.advance(waits)
    assert len(await store.claim(worker, 8)) == 8
    claims = [
        tally
        for tally in await store.run(tallies(store.ops))
        if tally.key.target == State.EXECUTING.code
    ]
    waited: Counter[tuple[int, int]] = Counter()
    for tally in claims:
        waited[tally.key.lane, tally.key.bucket] += tally.times
    (a, b) = sorted({lane for lane, _ in waited})
    long, middle = len(BUCKETS), bisect_left(BUCKETS, 21.0)
    assert (waited[a, long], waited[b, long], waited[a, middle]) == (2, 2, 2)
    assert sum(times for (_, bucket), times in waited.items() if bucket < middle) == 2
    expected = 2 * (4_020 + 2_020 + 20)
    assert sum(tally.seconds for tally in claims) == pytest.approx(expected, abs=60)


async def test_reasons_and_promotions_are_labels(store: World) -> None:
    worker = await store.worker(lease=10_000)
    await store.submit(priority="low", max_retries=1)
    await store.advance(700)
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=0))
    await store.claim_and_settle(worker, Failed(TaskError("x")))
    labels = {
        (tally.key.source, tally.key.target, tally.key.label): tally.times
        for tally in await store.run(tallies(store.ops))
    }
    executing = State.EXECUTING.code
    assert labels[State.QUEUED.code, executing, "5"] == 2
    assert labels[executing, State.RETRYING.code, "error"] == 1
    assert labels[executing, State.DEAD_LETTER.code, "max_retries_exceeded"] == 1
