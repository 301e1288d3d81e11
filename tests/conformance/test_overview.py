"""Stats, positions, reasons, dead letters: what follows from a store at a glance."""

from __future__ import annotations

import pytest

from fairlane.core import limits
from fairlane.core.breaker import Breaker, verdict
from fairlane.core.errors import InvalidTaskId
from fairlane.core.held_back import held_back
from fairlane.core.ids import new_id
from fairlane.core.model import Beat, TaskError, Verdict, WorkerStatus
from fairlane.core.outcomes import Completed, Failed, Released, Snoozed, TimedOut
from fairlane.core.priority import Band
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement


async def codes(store: World, task_id: str) -> list[str]:
    reasons = await store.run(store.ops.why(task_id))
    assert reasons is not None
    return [reason.code for reason in reasons]


async def test_stats_of_an_empty_store(store: World) -> None:
    stats = await store.run(store.ops.stats())
    assert {band: queue.depth for band, queue in stats.queues.items()} == dict.fromkeys(Band, 0)
    assert sum(stats.by_status.values()) == 0
    assert stats.by_type == {}
    assert (stats.workers.active, stats.workers.total_capacity) == (0, 0)
    assert stats.throughput.completed_last_minute == 0
    assert stats.throughput.avg_task_duration_seconds is None
    assert (stats.p50_age_seconds, stats.p95_age_seconds) == (0, 0)


async def test_depths_and_ages(store: World) -> None:
    await store.submit("old", priority="low")
    await store.advance(100)
    await store.submit_all([new_task("new", priority=level) for level in (3, 5, 6, 8, 10, 10)])
    await store.advance(10)
    stats = await store.run(store.ops.stats())
    depths = {band: queue.depth for band, queue in stats.queues.items()}
    assert depths == {Band.LOW: 2, Band.MEDIUM: 2, Band.HIGH: 1, Band.CRITICAL: 2}
    assert stats.queues[Band.LOW].oldest_age_seconds == pytest.approx(110, abs=5)
    assert stats.queues[Band.CRITICAL].oldest_age_seconds == pytest.approx(10, abs=5)
    assert stats.p50_age_seconds == pytest.approx(10, abs=5)
    assert stats.p95_age_seconds == pytest.approx(110, abs=5)
    assert stats.by_type["old"][State.QUEUED] == 1
    assert stats.by_type["new"][State.QUEUED] == 6


async def test_workers_in_stats(store: World) -> None:
    busy = await store.worker(capacity=4, lease=1_000)
    await store.worker(capacity=7, lease=1)
    draining = await store.worker(capacity=2, lease=1_000)
    await store.run(store.ops.mark(draining, WorkerStatus.DRAINING))
    await store.submit_all([new_task("t") for _ in range(3)])
    await store.claim(busy, 3)
    await store.advance(10)
    workers = (await store.run(store.ops.stats())).workers
    assert (workers.active, workers.draining, workers.unhealthy, workers.dead) == (1, 1, 0, 1)
    assert (workers.total_capacity, workers.used_capacity) == (6, 3)


async def test_throughput_of_the_last_minute(store: World) -> None:
    worker = await store.worker(lease=80_000)

    async def work(count: int) -> None:
        await store.submit_all([new_task("t", max_retries=0) for _ in range(count)])
        claimed = await store.claim(worker, count)
        last = claimed.pop()
        await store.run(
            store.ops.settle([settlement(task, Completed(b"1"), 2.0) for task in claimed])
        )
        await store.settle(last, Failed(TaskError("x")))

    await work(11)
    assert await store.behind.run(store.behind.ops.sample())
    assert not await store.behind.run(store.behind.ops.sample())  # a moment ago
    await store.advance(60)
    await work(6)
    stats = await store.run(store.ops.stats())
    assert stats.throughput.completed_last_minute == 5
    assert stats.throughput.failed_last_minute == 1
    assert stats.throughput.submitted_last_minute == 6
    # An hour ago there was no store: all counts.
    assert stats.throughput.completed_last_hour == 15
    assert stats.throughput.avg_task_duration_seconds == pytest.approx(2.0)
    assert stats.dlq_size == 2
    assert await store.behind.run(store.behind.ops.sample())
    samples = await store.run(store.ops.samples(0, 100))
    assert [sample.completed for sample in samples] == [10, 15]
    assert [sample.submitted for sample in samples] == [11, 17]
    assert await store.run(store.ops.samples(samples[1].at, 100)) == samples[1:]
    assert await store.run(store.ops.samples(0, 1)) == samples[:1]


async def test_a_young_store_counts_from_its_beginning(store: World) -> None:
    """What happened before the first sample counts too, for as long as it is recent."""
    worker = await store.worker(lease=80_000)
    await store.submit_all([new_task("t") for _ in range(10)])
    for task in await store.claim(worker, 4):
        await store.settle(task, Completed(b"1"))
    assert await store.behind.run(store.behind.ops.sample())
    for task in await store.claim(worker, 6):
        await store.settle(task, Completed(b"1"))
    for seconds in (0, 20, 20):  # with a sample more each time
        await store.advance(seconds)
        await store.behind.run(store.behind.ops.sample())
        minute = (await store.run(store.ops.stats())).throughput
        assert (minute.submitted_last_minute, minute.completed_last_minute) == (10, 10)
    await store.advance(200)
    await store.behind.run(store.behind.ops.sample())
    await store.advance(60)
    last = (await store.run(store.ops.stats())).throughput
    assert (last.submitted_last_minute, last.completed_last_minute) == (0, 0)
    assert last.completed_last_hour == 10
    began = [sample.began for sample in (await store.run(store.ops.facts())).samples]
    assert [each > 0 for each in began].count(True) <= 1


async def test_what_had_to_be_recovered(store: World) -> None:
    dying, slow = await store.worker(lease=10), await store.worker(lease=80_000)
    await store.submit_all([new_task("t", timeout_seconds=20) for _ in range(2)])
    lost, late = await store.claim_one(dying), await store.claim_one(slow)
    await store.start(late)
    await store.advance(21)
    await store.reap()
    assert await store.settle(late) is Verdict.STALE
    assert await store.settle(lost) is Verdict.STALE
    recovery = (await store.run(store.ops.stats())).recovery
    assert recovery.timeouts_last_hour == 1
    assert recovery.lost_workers_last_hour == 1
    assert recovery.stale_results_last_hour == 2


async def test_a_place_in_the_queue(store: World) -> None:
    first = await store.submit()
    await store.advance(1)
    await store.submit_all([new_task("work") for _ in range(10)])
    await store.advance(1)
    last = await store.submit()
    urgent = await store.submit(priority="critical")
    elsewhere = await store.submit(queue="other")
    scheduled = await store.submit(delay_seconds=100)
    ids = [first, last, urgent, elsewhere, scheduled, new_id()]
    places = await store.run(store.ops.position(ids))
    assert [place and place.position for place in places] == [2, 13, 1, 1, None, None]
    assert places[0] is not None
    assert places[0].wait_seconds is None


async def test_why_it_waits(store: World) -> None:
    task_id = await store.submit()
    assert await codes(store, task_id) == ["no_worker", "position"]
    worker = await store.worker(types=frozenset({"other"}), lease=80_000)
    assert await codes(store, task_id) == ["no_worker", "position"]
    worker = await store.worker(lease=80_000)
    assert await codes(store, task_id) == ["position"]
    for scope in ({}, {"queue": "default"}, {"type": "work"}):
        await store.run(store.ops.pause(True, **scope))  # noqa: FBT003
        assert await codes(store, task_id) == ["paused", "position"]
        await store.run(store.ops.pause(False, **scope))  # noqa: FBT003
    await store.run(store.ops.mark(worker, WorkerStatus.DRAINING))
    assert await codes(store, task_id) == ["no_worker", "position"]


async def test_a_type_that_its_workers_hold_back(store: World) -> None:
    """Ten tasks waited beside ten free slots, and nothing but the worker's log said why."""
    holding = await store.worker(lease=80_000)
    task_id = await store.submit("hang")
    await store.submit("fine")
    await store.advance(100)
    told = {"pid": 7, "held_back": ["hang"]}
    await store.run(store.ops.heartbeat(Beat(holding, 0, health=told)))
    (seen,) = await store.run(store.ops.workers())
    assert held_back(seen) == {"hang"}
    assert await codes(store, task_id) == ["held_back", "position"]
    (found,) = (await store.run(store.ops.stats())).unserved
    assert (found.type, found.count, found.held_back) == ("hang", 1, True)

    other = await store.worker(lease=80_000)
    assert await codes(store, task_id) == ["position"]
    assert (await store.run(store.ops.stats())).unserved == ()
    await store.run(store.ops.forget(other))
    assert await codes(store, task_id) == ["held_back", "position"]
    await store.run(store.ops.heartbeat(Beat(holding, 0)))
    assert await codes(store, task_id) == ["held_back", "position"], "it did not speak of that"
    await store.run(store.ops.heartbeat(Beat(holding, 0, health={"pid": 7})))
    assert await codes(store, task_id) == ["position"]
    assert (await store.run(store.ops.stats())).unserved == ()


async def test_why_a_limited_task_waits(store: World) -> None:
    worker = await store.worker(lease=80_000)
    await store.run(store.ops.limit("work", concurrency=1))
    await store.submit()
    task_id = await store.submit(max_retries=9)
    held = await store.claim_one(worker)
    assert await codes(store, task_id) == ["concurrency", "position"]
    await store.settle(held)
    await store.run(store.ops.limit("work", concurrency=0, rate=0.01))
    held = await store.claim_one(worker)
    assert held.task_id == task_id
    other = await store.submit()
    assert await codes(store, other) == ["rate", "position"]
    await store.run(store.ops.limit("work", rate=0, breaker=Breaker(1, 10, 100)))
    await store.settle(held, Failed(TaskError("x"), after=500))
    assert await codes(store, other) == ["breaker", "position"]
    assert await codes(store, task_id) == ["due", "breaker"]


async def test_why_a_scheduled_task_waits(store: World) -> None:
    await store.worker()
    parent = await store.submit(delay_seconds=50)
    child = await store.submit(depends_on=[parent])
    assert await codes(store, parent) == ["due"]
    reasons = await store.run(store.ops.why(child))
    assert reasons is not None
    assert [reason.code for reason in reasons] == ["dependency"]
    assert parent in reasons[0].message


async def test_why_not(store: World) -> None:
    task_id = await store.submit()
    await store.run(store.ops.cancel([task_id]))
    assert await store.run(store.ops.why(task_id)) == []
    assert await store.run(store.ops.why(new_id())) is None
    with pytest.raises(InvalidTaskId):
        await store.run(store.ops.why("not an id"))


async def test_dead_letters_in_groups(store: World) -> None:
    worker = await store.worker(lease=80_000)
    for number in range(3):
        await store.submit("mail", max_retries=0)
        await store.claim_and_settle(worker, Failed(TaskError(f"no such user {number}", "E1")))
    await store.advance(60)
    await store.submit("video", max_retries=0)
    await store.claim_and_settle(worker, Failed(TaskError("disk full")))
    analysis = await store.run(store.ops.dlq_analysis())
    assert (analysis.analysed, analysis.complete) == (4, True)
    mails, video = analysis.groups
    assert (mails.type, mails.code, mails.shape, mails.count) == (
        "mail",
        "E1",
        "no such user <n>",
        3,
    )
    assert mails.first_seen <= mails.last_seen < video.first_seen
    assert (video.type, video.retriable_share) == ("video", 1.0)


@pytest.mark.local
async def test_one_of_several_is_elected(store: World) -> None:
    assert await store.run(store.ops.elect("maintenance", "a", 10))
    assert not await store.run(store.ops.elect("maintenance", "b", 10))
    assert await store.run(store.ops.elect("schedules", "b", 10))
    await store.advance(8)
    assert await store.run(store.ops.elect("maintenance", "a", 10))
    await store.advance(8)
    assert not await store.run(store.ops.elect("maintenance", "b", 10))
    await store.advance(3)
    assert await store.run(store.ops.elect("maintenance", "b", 10))
    assert not await store.run(store.ops.elect("maintenance", "a", 10))


@pytest.mark.local
async def test_a_clock_that_went_back_keeps_nobody_in_office(store: World) -> None:
    await store.advance(86_400)
    assert await store.run(store.ops.elect("maintenance", "a", 10))
    await store.advance(-86_400)
    assert await store.run(store.ops.elect("maintenance", "b", 10))
    assert not await store.run(store.ops.elect("maintenance", "a", 10))


async def test_facts_at_a_glance(store: World) -> None:
    worker = await store.worker()
    await store.run(store.ops.limit("a", rate=5, concurrency=3))
    await store.submit_all([new_task("a", priority=level) for level in (1, 1, 9)])
    await store.claim(worker, 1)
    await store.behind.run(store.behind.ops.sample())
    facts = await store.run(store.ops.facts())
    assert len(facts.lanes) == 1
    ((lane_id, lane),) = facts.lanes.items()
    assert (lane.type, lane.queue) == ("a", "default")
    (stream,) = facts.streams
    assert (stream.lane, stream.level, stream.depth) == (lane_id, 1, 2)
    assert stream.oldest == stream.newest <= facts.now
    assert facts.held == {lane_id: 1}
    assert facts.buckets["a"].tokens < limits.BATCH
    assert [each.worker_id for each in facts.workers] == [worker]
    assert facts.workers[0].current_tasks
    assert facts.controls.types["a"].concurrency == 3
    assert [sample.started for sample in facts.samples] == [1]


async def test_tasks_that_no_worker_serves(store: World) -> None:
    """62 such tasks waited for half an hour, and nothing said so."""
    await store.worker(types=frozenset({"mail"}), lease=10_000)
    await store.submit_all([new_task("mail"), *(new_task("greet") for _ in range(3))])
    await store.submit("mail", queue="slow", required_capabilities=["gpu"])
    assert (await store.run(store.ops.stats())).unserved == ()
    await store.advance(100)
    await store.submit("new")
    found = (await store.run(store.ops.stats())).unserved
    assert {(each.queue, each.type, each.required_capabilities): each.count for each in found} == {
        ("default", "greet", ()): 3,
        ("slow", "mail", ("gpu",)): 1,
    }
    assert all(each.oldest_age_seconds == pytest.approx(100, abs=10) for each in found)
    await store.worker(capabilities=frozenset({"gpu"}), lease=10_000)
    assert (await store.run(store.ops.stats())).unserved == ()


async def test_completed_runs_are_counted_by_type(store: World) -> None:
    worker = await store.worker()
    for type, queue, outcome in (
        ("a", "default", None),
        ("a", "other", None),
        ("b", "default", Failed(TaskError("x", retriable=False))),
        ("c", "default", None),
    ):
        await store.submit(type, queue=queue)
        await store.claim_and_settle(worker, outcome)
    types = ["a", "b", "never"]
    found = await store.run(store.ops.completions(types))
    assert found == {"a": 2, "b": 0, "never": 0}
    found = await store.run(store.ops.completions(types, frozenset({"other"})))
    assert found == {"a": 1, "b": 0, "never": 0}
    assert await store.run(store.ops.completions([])) == {}


async def test_whoever_settles_learns_what_a_run_counts_as(store: World) -> None:
    worker = await store.worker()
    for outcome, good in (
        (Completed(b"1"), True),
        (Failed(TaskError("x")), False),
        (Failed(TaskError("x", retriable=False)), False),
        (TimedOut(), False),
        (Released(), None),
        (Snoozed(10.0), None),
    ):
        await store.submit()
        task = await store.claim_one(worker)
        (settled,) = await store.run(store.ops.settle([settlement(task, outcome)]))
        assert settled.move is not None
        assert verdict(settled.move) is good
        await store.run(store.ops.cancel([task.task_id]))
