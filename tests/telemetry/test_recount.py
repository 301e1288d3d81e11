"""After a random life, the metrics are what a recount of tasks, attempts and journal finds; and no
counter has ever gone down."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from fairlane.core.filters import EVERYTHING
from fairlane.core.model import Event, NewTask, Task, TaskError, Verdict, microseconds_of
from fairlane.core.outcomes import Completed, Failed, Outcome, Released, Snoozed, TimedOut
from fairlane.core.priority import Aging, Band, band_of
from fairlane.core.recurrence import every
from fairlane.core.retention import Retention
from fairlane.core.schedules import new_schedule
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.conformance.test_accounting import history
from tests.fixtures.stores import World, get_all, settlement, verdicts_of
from tests.telemetry.kit import Scraped, scraped

OUTCOMES: list[Outcome] = [
    Completed(b"1"),
    Completed(b"1"),
    Failed(TaskError("x"), after=5),
    Failed(TaskError("x", retriable=False)),
    TimedOut(),
    Released(),
    Snoozed(3),
]
ENDS = {
    "complete": State.COMPLETED,
    "fail": State.FAILED,
    "expire": State.FAILED,
    "dead_letter": State.DEAD_LETTER,
    "cancel": State.CANCELLED,
}


class Life:
    """Things that happen to a store, and what only those who did them can know."""

    def __init__(self, store: World, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self.ids: list[str] = []
        self.promoted: Counter[tuple[Band, Band]] = Counter()
        self.stale = 0

    async def happen(self) -> None:
        """One thing or another."""
        store, rng = self._store, self._rng
        match rng.randrange(8):
            case 0 | 1:
                self.ids += await store.submit_all([self._task() for _ in range(12)])
            case 2 | 3 | 4:
                await self._work()
            case 5:
                await store.advance(rng.choice([1, 40, 700]))
            case 6 if self.ids:
                some = rng.sample(self.ids, min(4, len(self.ids)))
                await store.run(store.ops.cancel(some[:1]))
                await store.run(store.ops.replay(some[1:], level=rng.choice([None, 9])))
            case _:
                await store.advance(120)
                await store.reap()

    def _task(self) -> NewTask:
        rng = self._rng
        return new_task(
            rng.choice("ab"),
            queue=rng.choice("xy"),
            priority=rng.randrange(11),
            max_retries=1,
            delay_seconds=rng.choice([0, 0, 30]),
            expires_at=rng.choice([None, None, datetime.now(UTC) + timedelta(seconds=1_500)]),
            timeout_seconds=60,
        )

    async def _work(self) -> None:
        """A worker takes a few and reports most of them, one twice; it may never come back."""
        store, rng = self._store, self._rng
        worker = await store.worker(lease=rng.choice([50, 5_000]))
        claimed = await store.claim(worker, 8)
        for task in claimed:
            stored = await store.task(task.task_id)
            assert stored.claimed_at is not None
            age = microseconds_of(stored.claimed_at) - task.ready_at
            effective = Aging().effective(task.level, age)
            if effective != task.level:
                self.promoted[band_of(task.level), band_of(effective)] += 1
            if rng.random() < 0.3:
                await store.start(task)
        reports = [settlement(task, rng.choice(OUTCOMES), rng.random()) for task in claimed[2:]]
        assert set(verdicts_of(await store.run(store.ops.settle(reports)))) <= {Verdict.APPLIED}
        if reports:
            late = settlement(claimed[2], Failed(TaskError("late", code="LATE"), after=1))
            if not isinstance(reports[0].outcome, Failed):
                assert verdicts_of(await store.run(store.ops.settle([late]))) == [Verdict.STALE]
                self.stale += 1


async def test_metrics_are_what_a_recount_finds(store: World) -> None:
    life = Life(store, random.Random(8))
    before = await scrape(store)
    for _ in range(45):
        await life.happen()
        after = await scrape(store)
        grown(before, after)
        before = after
    told = before
    tasks = [task for task in await get_all(store.backend, life.ids) if task]
    assert len(tasks) == len(life.ids) > 60
    events = await history(store)

    compare_states(told, tasks)
    compare_transitions(told, events)
    compare_attempts(told, tasks)
    promoted = {(each["from"], each["to"]): n for each, n in told.those("tasks_promoted_total")}
    assert {pair: n for pair, n in promoted.items() if n} == life.promoted
    assert told("fairlane_stale_results_total") == life.stale
    assert len(life.promoted) >= 2
    assert life.stale > 3

    await store.advance(100 * 86_400)
    await store.run(store.ops.cancel([t.task_id for t in tasks if t.status is not State.EXECUTING]))
    counted = (await scrape(store)).counters()
    everything_goes = Retention(0, 0, 0, 0, 0, 0)
    while (await store.run(store.ops.prune(everything_goes))).more:
        pass
    assert (await store.run(store.ops.total(EVERYTHING))).count < len(tasks) / 2
    assert (await scrape(store)).counters() == counted


async def test_ticks_are_what_a_recount_finds(store: World) -> None:
    rng = random.Random(19)
    policies = [("once", "skip"), ("skip", "queue"), ("all", "allow"), ("once", "replace")]
    new = [
        new_schedule(
            f"s{number}",
            every(600, 60 * number),
            new_task("a"),
            missed=missed,
            overlap=overlap,
            within=3_600,
            jitter=30,
        )
        for number, (missed, overlap) in enumerate(policies)
    ]
    await store.run(store.ops.put_schedules(new))
    ids = [each.schedule_id for each in new]
    before = await scrape(store)
    for turn in range(15):
        await store.advance(rng.choice([30, 300, 900, 9_000]))
        if turn == 4:
            await store.run(store.ops.pause_schedule("s1"))
        if turn == 10:
            await store.run(store.ops.resume_schedule("s1"))
        await store.run(store.ops.fire_due())
        after = await scrape(store)
        grown(before, after)
        before = after
    schedules = await store.run(store.ops.schedules(ids))
    recounted: Counter[str] = Counter()
    for schedule in schedules:
        assert schedule is not None
        for run in schedule.standing.runs:
            recounted[run.outcome] += run.count
    assert before.by("fairlane_schedule_ticks_total", "outcome") == recounted
    assert recounted.keys() >= {"fired", "missed", "overlap", "paused"}
    assert before("fairlane_schedule_lag_seconds_count") == recounted["fired"]


async def scrape(store: World) -> Scraped:
    facts = await store.run(store.ops.facts())
    return scraped(facts, await store.run(store.ops.tick_counts()))


def grown(before: Scraped, after: Scraped) -> None:
    """Nothing that was counted is ever taken back, nor does a series vanish."""
    now = after.counters()
    fallen = {key: value for key, value in before.counters().items() if not now[key] >= value}
    assert fallen == {}


def compare_states(told: Scraped, tasks: list[Task]) -> None:
    states = Counter(str(task.status) for task in tasks)
    found = {each["status"]: n for each, n in told.those("task_state_total")}
    assert {state: n for state, n in found.items() if n} == states
    assert len(states) >= 5
    queued = [task for task in tasks if task.status is State.QUEUED]
    depths = Counter(str(band_of(task.priority)) for task in queued)
    assert {each["priority"]: n for each, n in told.those("queue_depth") if n} == depths
    queues = Counter(task.queue for task in queued)
    waiting = told.those("fairlane_queue_tasks", status="queued")
    assert {each["queue"]: n for each, n in waiting if n} == queues
    assert told("taskqueue_dlq_size") == states["dead_letter"]


def compare_transitions(told: Scraped, events: list[Event]) -> None:
    """Against the journal."""
    verbs = Counter(event.verb for event in events)
    assert verbs.keys() >= {"retry", "expire", "replay", "cancel", "dead_letter", "worker_dead"}
    submitted = Counter(
        (event.type, "normal" if band_of(event.level) is Band.MEDIUM else str(band_of(event.level)))
        for event in events
        if event.verb == "submit" and event.level is not None
    )
    found = told.those("taskqueue_tasks_submitted_total")
    assert {(each["type"], each["priority"]): n for each, n in found} == submitted
    ends = Counter((event.type, str(ENDS[event.verb])) for event in events if event.verb in ENDS)
    found = told.those("taskqueue_tasks_completed_total")
    assert {(each["type"], each["status"]): n for each, n in found} == ends
    assert told.sum("tasks_dlq_total") == verbs["dead_letter"]
    moves = {
        (each["from"], each["to"]): n for each, n in told.those("task_state_transitions_total")
    }
    assert moves["queued", "executing"] == verbs["claim"]
    assert moves["none", "queued"] + moves["none", "scheduled"] == verbs["submit"]
    assert sum(n for (source, _), n in moves.items() if source == "dead_letter") <= verbs["replay"]
    assert told.sum("tasks_failed_total") == verbs["dead_letter"] + verbs["fail"] + verbs["expire"]
    assert told("tasks_failed_total", reason="expired") == verbs["expire"]
    assert told("worker_heartbeat_failures_total") == verbs["worker_dead"]
    lasted = [event for event in events if event.seconds is not None]
    for type in ("a", "b"):
        mine = [event.seconds or 0.0 for event in lasted if event.type == type]
        assert told("taskqueue_task_duration_seconds_count", type=type) == len(mine)
        total = told("taskqueue_task_duration_seconds_sum", type=type)
        assert total == pytest.approx(sum(mine), abs=0.01)
        at_most_half = told("taskqueue_task_duration_seconds_bucket", type=type, le="0.5")
        assert at_most_half == sum(seconds <= 0.5 for seconds in mine)


def compare_attempts(told: Scraped, tasks: list[Task]) -> None:
    """Against what each task remembers of its runs."""
    outcomes = Counter(past.outcome for task in tasks for past in task.attempts)
    assert told("fairlane_task_timeouts_total") == outcomes["timed_out"] > 0
    lost = outcomes["lost"] + outcomes["returned"]
    retried = told.sum("task_retries_total", reason="worker_lost")
    assert retried + told("tasks_failed_total", reason="worker_lost") == lost > 0
    final = sum(
        told("tasks_failed_total", reason=reason)
        for reason in ("max_retries_exceeded", "not_retriable")
    )
    assert told.sum("task_retries_total", reason="error") + final == outcomes["failed"]
    completed = told.sum("taskqueue_tasks_completed_total", status="completed")
    assert completed == outcomes["completed"]
