"""Deleting and pruning: nothing is left of a task that is gone."""

from __future__ import annotations

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidRetention
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_id
from fairlane.core.model import Deleted, Report, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.retention import Pruned, Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Unique
from tests.fixtures.stores import World, settlement

FATAL = Failed(TaskError("no", retriable=False))
AT_ONCE = Retention(0, 0, 0, 0, 0, 0)


async def test_delete_what_has_ended(store: World) -> None:
    worker = await store.worker()
    completed = await store.submit()
    await store.claim_and_settle(worker)
    failed = await store.submit()
    await store.claim_and_settle(worker, FATAL)
    retrying = await store.submit()
    child = await store.submit(depends_on=[retrying])
    task = await store.claim_one(worker)
    assert task.task_id == retrying
    await store.settle(task, Failed(TaskError("x"), after=1_000))
    queued = await store.submit()
    scheduled = await store.submit(delay_seconds=1_000)
    missing = new_id()
    ids = [completed, failed, retrying, queued, scheduled, missing]
    assert await store.run(store.ops.delete(ids)) == [
        Deleted(completed, True, State.COMPLETED),  # noqa: FBT003
        Deleted(failed, True, State.FAILED),  # noqa: FBT003
        Deleted(retrying, True, State.RETRYING),  # noqa: FBT003
        Deleted(queued, False, State.QUEUED),  # noqa: FBT003
        Deleted(scheduled, False, State.SCHEDULED),  # noqa: FBT003
        Deleted(missing, False, None),  # noqa: FBT003
    ]
    found = await store.run(store.ops.get(ids))
    assert [task and task.task_id for task in found] == [None, None, None, queued, scheduled, None]
    assert await store.state(child) is State.CANCELLED
    assert await store.census() == {State.QUEUED: 1, State.SCHEDULED: 1, State.CANCELLED: 1}
    assert await store.run(store.ops.delete([completed])) == [Deleted(completed, False, None)]  # noqa: FBT003


async def test_a_running_task_cannot_be_deleted(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    task = await store.claim_one(worker)
    (answer,) = await store.run(store.ops.delete([task_id]))
    assert answer == Deleted(task_id, False, State.EXECUTING)  # noqa: FBT003
    assert await store.settle(task) is Verdict.APPLIED


async def test_only_among_the_states_that_were_meant(store: World) -> None:
    worker = await store.worker()
    queued = await store.submit()
    among = frozenset({State.SCHEDULED, State.FAILED})
    (cancelled,) = await store.run(store.ops.cancel([queued], among=among))
    assert (cancelled.applied, cancelled.state) == (False, State.QUEUED)
    await store.run(store.ops.cancel([queued]))
    (replayed,) = await store.run(store.ops.replay([queued], among=among))
    assert (replayed.applied, replayed.state) == (False, State.CANCELLED)
    (deleted,) = await store.run(store.ops.delete([queued], among=among))
    assert (deleted.applied, deleted.state) == (False, State.CANCELLED)
    (deleted,) = await store.run(store.ops.delete([queued], among=frozenset({State.CANCELLED})))
    assert deleted.applied
    scheduled = await store.submit(delay_seconds=1_000)
    (replayed,) = await store.run(store.ops.replay([scheduled], among=among))
    assert replayed.applied
    assert (await store.claim_one(worker)).task_id == scheduled


async def test_a_deletion_is_told(store: World) -> None:
    task_id = await store.submit()
    await store.run(store.ops.cancel([task_id]))
    tail = await store.run(store.ops.tail())
    await store.run(store.ops.delete([task_id]))
    (event,) = (await store.run(store.ops.events(tail, 10))).events
    assert (event.verb, event.task_id, event.type) == ("delete", task_id, "work")


async def test_what_comes_too_late_for_a_deleted_task(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    task = await store.claim_one(worker)
    await store.run(store.ops.cancel([task_id]))
    await store.run(store.ops.delete([task_id]))
    assert await store.settle(task) is Verdict.MISSING
    report = Report(task_id, task.attempt, 50)
    assert await store.run(store.ops.progress(worker, [report])) == [Verdict.MISSING]


async def test_an_idempotency_key_of_a_deleted_task_is_free(store: World) -> None:
    first = await store.submit(idempotency_key="k")
    await store.run(store.ops.cancel([first]))
    assert await store.submit(idempotency_key="k") == first
    await store.run(store.ops.delete([first]))
    second = await store.submit(idempotency_key="k")
    assert second != first
    assert await store.submit(idempotency_key="k") == second


@pytest.mark.local
async def test_prune_by_state_and_age(store: World) -> None:
    worker = await store.worker(lease=80_000)
    retention = Retention(completed=100, failed=200, cancelled=300, dead_letter=400)
    ids = {}
    ids["completed"] = await store.submit()
    await store.claim_and_settle(worker)
    ids["failed"] = await store.submit()
    await store.claim_and_settle(worker, FATAL)
    ids["dead_letter"] = await store.submit(max_retries=0)
    await store.claim_and_settle(worker, Failed(TaskError("x")))
    ids["cancelled"] = await store.submit()
    await store.run(store.ops.cancel([ids["cancelled"]]))
    ids["queued"] = await store.submit()
    left = dict(ids)
    assert await store.run(store.ops.prune(retention)) == Pruned(0, more=False)
    for state in ("completed", "failed", "cancelled", "dead_letter"):
        await store.advance(101)
        assert await store.run(store.ops.prune(retention)) == Pruned(1, more=False)
        del left[state]
        found = await store.run(store.ops.page(EVERYTHING, 10))
        assert {task.task_id for task in found.tasks} == set(left.values())
        assert await store.census() == {State(name): 1 for name in left}
    assert list(left) == ["queued"]


@pytest.mark.local
async def test_prune_more_than_a_batch(store: World) -> None:
    count = 2 * limits.BATCH + 50
    for start in range(0, count, limits.BATCH):
        tasks = [new_task("t") for _ in range(min(limits.BATCH, count - start))]
        ids = await store.submit_all(tasks)
        await store.run(store.ops.cancel(ids))
    await store.advance(1)
    pruned = [await store.run(store.ops.prune(AT_ONCE)) for _ in range(4)]
    assert [batch.tasks for batch in pruned] == [limits.BATCH, limits.BATCH, 50, 0]
    assert [batch.more for batch in pruned[:2]] == [True, True]
    assert not pruned[3].more
    assert await store.census() == {}


@pytest.mark.local
async def test_dead_workers_are_forgotten_in_time(store: World) -> None:
    dead, holding = await store.worker(lease=10), await store.worker(lease=10)
    alive = await store.worker(lease=80_000)
    await store.submit()
    task = await store.claim_one(holding)
    await store.advance(11)
    await store.run(store.ops.bury([dead, holding, alive]))
    await store.run(store.ops.prune(Retention()))
    assert len(await store.run(store.ops.workers())) == 3
    await store.advance(200)
    await store.run(store.ops.prune(Retention(workers=100)))
    known = {worker.worker_id for worker in await store.run(store.ops.workers())}
    assert known == {holding, alive}  # one still has a task to be taken from it
    assert task.worker_id == holding
    await store.reap()
    await store.run(store.ops.prune(Retention(workers=100)))
    assert [worker.worker_id for worker in await store.run(store.ops.workers())] == [alive]


@pytest.mark.local
async def test_nothing_is_left_per_task(store: World) -> None:
    """After retention a store has as much in it as one that never had a task."""

    async def a_life() -> None:
        worker = await store.worker(lease=80_000)
        everything = Unique(states=frozenset(State))
        parent = await store.submit("t", {"n": 1}, unique=everything, tags={"a": "b"})
        await store.submit("t", depends_on=[parent], idempotency_key="key-1")
        task = await store.claim_one(worker)
        await store.start(task)
        await store.run(
            store.ops.progress(worker, [Report(task.task_id, task.attempt, 50, "half")])
        )
        await store.settle(task, Failed(TaskError("x"), after=0))
        await store.claim_and_settle(worker, Completed(b'"result"'))
        await store.claim_and_settle(worker, FATAL)
        doomed = await store.submit("t", delay_seconds=500)
        await store.submit("t", depends_on=[doomed])
        await store.run(store.ops.cancel([doomed]))
        batch = [new_task("t", {"n": n}, unique=True) for n in range(20)]
        await store.submit_all(batch)
        claimed = await store.claim(worker, 20)
        await store.run(store.ops.settle([settlement(each) for each in claimed]))
        await store.run(store.ops.forget(worker))
        await store.run(store.ops.sample())
        await store.advance(2 * 86_400)
        for _ in range(3):
            await store.run(store.ops.prune(AT_ONCE))

    await a_life()
    before = await store.leftovers()
    for _ in range(3):
        await a_life()
    assert await store.leftovers() == before
    assert await store.census() == {}


@pytest.mark.local
async def test_retentions_that_make_no_sense(store: World) -> None:
    for bad in (Retention(completed=-1), Retention(journal=float("nan"))):
        with pytest.raises(InvalidRetention):
            await store.run(store.ops.prune(bad))
