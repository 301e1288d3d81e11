"""Time: nothing starts early, nothing expired starts, time limits are kept by the engine too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fairlane.core.model import Start, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement, verdicts_of


async def test_nothing_starts_before_its_time(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit(delay_seconds=10)
    grant = await store.ask(worker)
    assert grant.tasks == []
    assert grant.next_due_in is not None
    assert 5 < grant.next_due_in <= 10
    await store.advance(grant.next_due_in - 0.5)
    assert await store.claim(worker) == []
    await store.advance(0.6)
    assert (await store.claim_one(worker)).task_id == task_id


async def test_the_next_due_time_is_the_nearest(store: World) -> None:
    worker = await store.worker()
    assert (await store.ask(worker)).next_due_in is None
    await store.submit(delay_seconds=500)
    await store.submit(delay_seconds=50)
    await store.submit()
    task = await store.claim_one(worker)
    await store.settle(task, Failed(TaskError("x"), after=20))
    due = (await store.ask(worker)).next_due_in
    assert due is not None
    assert 15 < due <= 20


async def test_a_flood_of_due_tasks_comes_in_portions(store: World) -> None:
    await store.submit_all([new_task("work", delay_seconds=1) for _ in range(1_000)])
    await store.submit_all([new_task("work", delay_seconds=1) for _ in range(200)])
    worker = await store.worker()
    await store.advance(2)
    counts = [len(await store.claim(worker, 500)) for _ in range(4)]
    assert counts == [500, 500, 200, 0]


async def test_an_expired_task_never_starts(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    expiring = await store.submit(expires_at=soon)
    delayed = await store.submit(expires_at=soon, delay_seconds=100)
    other = await store.submit(priority="low")
    await store.advance(61)
    worker = await store.worker()
    assert [task.task_id for task in await store.claim(worker)] == [other]
    for task_id in (expiring, delayed):
        task = await store.task(task_id)
        assert task.status is State.FAILED
        assert task.error is not None
        assert (task.error.reason, task.error.retriable) == ("expired", False)
        assert (task.attempt, task.retry_count, task.attempts) == (0, 0, ())
        assert task.completed_at is not None
    assert await store.census() == {State.FAILED: 2, State.EXECUTING: 1}


async def test_a_retry_expires_too(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    task_id = await store.submit(expires_at=soon)
    worker = await store.worker()
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=100))
    await store.advance(200)
    assert await store.claim(worker) == []
    assert await store.state(task_id) is State.FAILED


async def test_a_started_task_may_finish_after_its_expiry(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    task_id = await store.submit(expires_at=soon)
    worker = await store.worker(lease=1_000)
    task = await store.claim_one(worker)
    await store.advance(120)
    assert await store.claim(worker) == []
    assert await store.settle(task) is Verdict.APPLIED
    assert await store.state(task_id) is State.COMPLETED


async def test_a_flood_of_expired_tasks(store: World) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    await store.submit_all([new_task("work", expires_at=soon) for _ in range(1_000)])
    good = await store.submit()
    await store.advance(61)
    worker = await store.worker()
    claimed = []
    for _ in range(5):
        claimed += await store.claim(worker, 100)
    assert [task.task_id for task in claimed] == [good]
    assert await store.census() == {State.FAILED: 1_000, State.EXECUTING: 1}


async def test_the_time_limit_counts_from_the_real_start(store: World) -> None:
    task_id = await store.submit(timeout_seconds=30)
    worker = await store.worker(lease=10_000)
    task = await store.claim_one(worker)
    await store.advance(100)
    assert await store.behind.run(store.behind.ops.expired(10)) == []
    started = await store.run(store.ops.start(worker, [Start(task_id, 1, seconds=5)]))
    assert started == [Verdict.APPLIED]
    held = await store.task(task_id)
    assert held.started_at is not None
    await store.advance(24)
    assert await store.behind.run(store.behind.ops.expired(10)) == []
    await store.advance(2)
    (overdue,) = await store.behind.run(store.behind.ops.expired(10))
    assert (overdue.task_id, overdue.cause, overdue.started) == (task_id, "timeout", True)
    assert await store.reap() == [Verdict.APPLIED]
    after = await store.task(task_id)
    assert (after.status, after.retry_count, after.timeout_seconds) == (State.RETRYING, 1, 45)
    assert after.attempts[0].started_at == held.started_at
    assert await store.settle(task, Completed(b"1")) is Verdict.STALE


async def test_a_timed_out_task_keeps_its_slot_until_its_worker_lets_go(store: World) -> None:
    await store.submit_all([new_task("work", timeout_seconds=10) for _ in range(3)])
    await store.run(store.ops.limit("work", concurrency=1))
    worker = await store.worker(lease=10_000)
    task = await store.claim_one(worker)
    await store.run(store.ops.start(worker, [Start(task.task_id, 1)]))
    await store.advance(11)
    assert await store.reap() == [Verdict.APPLIED]
    assert await store.claim(worker) == []
    assert await store.settle(task) is Verdict.STALE
    assert len(await store.claim(worker)) == 1


async def test_no_time_limit(store: World) -> None:
    task_id = await store.submit(timeout_seconds=None)
    worker = await store.worker(lease=80_000)
    await store.claim_one(worker)
    await store.run(store.ops.start(worker, [Start(task_id, 1)]))
    await store.advance(79_000)
    assert await store.behind.run(store.behind.ops.expired(10)) == []


@pytest.mark.local
async def test_the_reaper_looks_again_before_it_acts(store: World) -> None:
    """Between its look and its deed the task may have ended: then nothing happens."""
    await store.submit(timeout_seconds=10)
    worker = await store.worker(lease=10_000)
    task = await store.claim_one(worker)
    await store.run(store.ops.start(worker, [Start(task.task_id, 1)]))
    await store.advance(5)
    assert await store.reap() == []
    early = settlement(task)
    assert verdicts_of(await store.run(store.ops.settle([early], reaping=True))) == [Verdict.STALE]
    assert await store.state(task.task_id) is State.EXECUTING


async def test_a_moved_clock_stays_where_it_is(store: World) -> None:
    """Also for whoever opens the store later: it is the store's clock."""
    await store.advance(1_000)
    other = store.processes(2)[1]
    (answer,) = await other.run(other.ops.submit([new_task("t")]))
    first = await store.submit()
    created = (await store.task(answer.task_id)).created_at
    assert abs((await store.task(first)).created_at - created) < timedelta(seconds=500)
