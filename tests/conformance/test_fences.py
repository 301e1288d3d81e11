"""A fence outlives its task: reports of a deleted task do not count for one with the same id."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core.model import Claimed, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

DAY = 86_400.0


async def again(store: World, task_id: str, **options: Any) -> None:
    """Submit a task under the id of one that was deleted."""
    (accepted,) = await store.run(store.ops.submit([new_task("work", task_id=task_id, **options)]))
    assert (accepted.task_id, accepted.known) == (task_id, False)


async def deleted(store: World, *task_ids: str) -> None:
    answers = await store.run(store.ops.delete(task_ids))
    assert [answer.applied for answer in answers] == [True] * len(task_ids)


async def refuses(store: World, old: Claimed, worker: str) -> None:
    """Nothing that the old run says counts, and the new one completes."""
    new = await store.claim_one(worker)
    assert (new.task_id, new.attempt) == (old.task_id, old.attempt + 1)
    assert await store.start(old) is Verdict.STALE
    for outcome in (Completed(b"1"), Failed(TaskError("x"))):
        assert await store.settle(old, outcome) is Verdict.STALE
    assert await store.state(old.task_id) is State.EXECUTING
    assert await store.settle(new, Completed(b"2")) is Verdict.APPLIED
    task = await store.task(old.task_id)
    assert (task.status, task.result, task.attempt) == (State.COMPLETED, b"2", new.attempt)


async def test_a_run_that_was_cancelled_and_deleted(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    old = await store.claim_one(worker)
    await store.start(old)
    await store.run(store.ops.cancel([task_id]))
    await deleted(store, task_id)
    await again(store, task_id)
    await refuses(store, old, worker)


async def test_a_report_that_is_repeated(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    old = await store.claim_one(worker)
    await store.settle(old)
    await deleted(store, task_id)
    await again(store, task_id)
    await refuses(store, old, worker)


@pytest.mark.parametrize(
    "options",
    [
        {"delay_seconds": 5},
        {"idempotency_key": "key"},
        {"unique": True},
        {"priority": "high", "tags": {"a": "b"}},
    ],
)
async def test_whatever_the_new_task_is_like(store: World, options: dict[str, Any]) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    old = await store.claim_one(worker)
    await store.settle(old)
    await deleted(store, task_id)
    await again(store, task_id, **options)
    await store.advance(6)
    await refuses(store, old, worker)


async def test_a_task_that_depends_on_others(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    old = await store.claim_one(worker)
    await store.settle(old)
    await deleted(store, task_id)
    parent = await store.submit("parent")
    await again(store, task_id, depends_on=[parent])
    await store.claim_and_settle(worker)
    await refuses(store, old, worker)


async def test_a_task_that_was_retried_and_deleted(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit(max_retries=3)
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=5))
    await store.advance(6)
    old = await store.claim_one(worker)
    assert old.attempt == 2
    await store.settle(old, Failed(TaskError("x"), after=5))
    await deleted(store, task_id)
    await again(store, task_id)
    await refuses(store, old, worker)


async def test_deleted_again_and_again(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    for attempt in range(1, 5):
        task = await store.claim_one(worker)
        assert task.attempt == attempt
        await store.settle(task)
        await deleted(store, task_id)
        await again(store, task_id)
    await store.run(store.ops.cancel([task_id]))
    await deleted(store, task_id)
    await again(store, task_id)
    assert (await store.claim_one(worker)).attempt == 5


async def test_among_other_tasks(store: World) -> None:
    worker = await store.worker()
    ids = await store.submit_all([new_task("work") for _ in range(4)])
    for _ in ids:
        await store.claim_and_settle(worker)
    await deleted(store, ids[1], ids[2])
    tasks = [new_task("work", task_id=ids[0]), new_task("work", task_id=ids[2]), new_task("work")]
    accepted = await store.run(store.ops.submit(tasks))
    assert [answer.known for answer in accepted] == [True, False, False]
    found = {task.task_id: task.attempt for task in await store.claim(worker)}
    assert found == {ids[2]: 2, tasks[2].task_id: 1}


@pytest.mark.local
async def test_a_run_whose_task_was_pruned(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    old = await store.claim_one(worker)
    await store.run(store.ops.cancel([task_id]))
    await store.advance(5)
    await store.run(store.ops.prune(Retention(1, 1, 1, 1)))
    await again(store, task_id)
    await refuses(store, old, worker)


@pytest.mark.local
async def test_nothing_is_left_after_a_day(store: World) -> None:
    worker = await store.worker(lease=80_000.0)
    task_id = await store.submit()
    await store.claim_and_settle(worker)
    never_ran = await store.submit()
    await store.run(store.ops.cancel([never_ran]))
    empty = await store.leftovers()
    await deleted(store, task_id, never_ran)
    await store.advance(DAY + 1)
    await store.run(store.ops.prune(Retention()))
    assert (await store.leftovers()).keys() <= empty.keys()
    await again(store, task_id)
    assert (await store.claim_one(worker)).attempt == 1


async def test_a_fence_of_yesterday_does_not_count(store: World) -> None:
    worker = await store.worker(lease=80_000.0)
    task_id = await store.submit()
    await store.claim_and_settle(worker)
    await deleted(store, task_id)
    await store.advance(DAY + 1)
    await again(store, task_id)
    assert (await store.claim_one(worker)).attempt == 1


async def test_a_task_that_never_ran_begins_at_one(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    await store.run(store.ops.cancel([task_id]))
    await deleted(store, task_id)
    await again(store, task_id)
    assert (await store.claim_one(worker)).attempt == 1
