"""A task is kept beyond its retention while a task that depends on it has not ended."""

from __future__ import annotations

import pytest

from fairlane.core import limits, retention
from fairlane.core.ids import new_ids
from fairlane.core.inputs import Input
from fairlane.core.model import Claimed, TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.retention import Pruned, Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement

pytestmark = pytest.mark.local  # a server does not prune for others

FATAL = Failed(TaskError("no", retriable=False))
SHORT = Retention(100, 100, 100, 100, 100, 100)
LEASE = 80_000.0


async def prune(store: World) -> int:
    """Prune once all of what there is may go by its age; return how many tasks went."""
    await store.advance(101)
    gone, more = 0, True
    while more:
        pruned = await store.run(store.ops.prune(SHORT))
        gone, more = gone + pruned.tasks, pruned.more
    return gone


async def complete(store: World, tasks: list[Claimed]) -> None:
    for start in range(0, len(tasks), limits.BATCH):
        part = tasks[start : start + limits.BATCH]
        await store.run(store.ops.settle([settlement(task, Completed(b"1")) for task in part]))


async def test_until_its_dependent_has_ended(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent], max_retries=1)
    alone = await store.submit()
    assert {(await store.claim_and_settle(worker)).task_id for _ in range(2)} == {parent, alone}
    assert await store.state(child) is State.QUEUED
    assert await prune(store) == 1
    assert await store.run(store.ops.get([alone])) == [None]
    task = await store.claim_one(worker)
    assert task.task_id == child
    assert await prune(store) == 0
    await store.settle(task, Failed(TaskError("x"), after=1_000))
    assert await store.state(child) is State.RETRYING
    assert await prune(store) == 0
    await store.advance(1_000)
    await store.claim_and_settle(worker, Completed(b"1"))
    assert await store.state(parent) is State.COMPLETED
    assert await store.run(store.ops.prune(SHORT)) == Pruned(1, more=False)
    assert await store.run(store.ops.get([parent])) == [None]
    assert await prune(store) == 1
    assert await store.census() == {}


async def test_while_a_sibling_runs_for_three_days(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    quick, slow = await store.submit(), await store.submit(priority=1)
    total = await store.submit(
        "total",
        depends_on=[quick, slow],
        inputs={"each": Input((0, 1), many=True)},
    )
    await store.claim_and_settle(worker, Completed(b"1"))
    task = await store.claim_one(worker)
    for _ in range(3):
        await store.advance(86_400)
        assert await store.run(store.ops.prune(Retention())) == Pruned(0, more=False)
    await store.settle(task, Completed(b"2"))
    assert await store.state(total) is State.QUEUED
    results = await store.run(store.ops.get([quick, slow]))
    assert [each and each.result for each in results] == [b"1", b"2"]


@pytest.mark.parametrize("end", ["failed", "dead", "cancelled"])
async def test_however_it_ended(store: World, end: str) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit(max_retries=0)
    child = await store.submit(depends_on=[parent], on_parent_failure="continue")
    if end == "cancelled":
        await store.run(store.ops.cancel([parent]))
    else:
        outcome = FATAL if end == "failed" else Failed(TaskError("x"))
        await store.claim_and_settle(worker, outcome)
    assert await prune(store) == 0
    assert (await store.claim_and_settle(worker)).task_id == child
    assert await store.run(store.ops.prune(SHORT)) == Pruned(1, more=False)


async def test_a_parent_that_had_ended_before(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    await store.claim_and_settle(worker)
    child = await store.submit(depends_on=[parent])
    assert await prune(store) == 0
    assert (await store.claim_and_settle(worker)).task_id == child
    assert await store.run(store.ops.prune(SHORT)) == Pruned(1, more=False)


async def test_nothing_is_kept_for_tasks_that_never_run(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit(max_retries=0)
    doomed = await store.submit(depends_on=[parent])
    await store.claim_and_settle(worker, FATAL)
    late = await store.submit(depends_on=[parent])
    assert [await store.state(each) for each in (doomed, late)] == [State.CANCELLED] * 2
    assert await prune(store) == 3


async def test_nothing_is_kept_for_tasks_that_were_deleted(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    await store.claim_and_settle(worker)
    await store.run(store.ops.cancel([child]))
    await store.run(store.ops.delete([child]))
    assert await prune(store) == 1
    assert await store.census() == {}


async def test_a_dependent_that_runs_again_needs_it_again(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    other = await store.submit(depends_on=[parent], delay_seconds=10_000)
    await store.claim_and_settle(worker)
    await store.claim_and_settle(worker, FATAL)
    assert await store.run(store.ops.prune(SHORT)) == Pruned(0, more=False)
    await store.run(store.ops.replay([child]))
    await store.run(store.ops.cancel([other]))
    assert await prune(store) == 1  # the other
    assert await store.state(parent) is State.COMPLETED
    assert (await store.claim_and_settle(worker)).task_id == child
    assert await store.run(store.ops.prune(SHORT)) == Pruned(1, more=False)


async def test_a_parent_that_was_replayed_counts_by_its_new_end(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit(max_retries=0)
    child = await store.submit(depends_on=[parent], on_parent_failure="continue", delay_seconds=500)
    await store.claim_and_settle(worker, FATAL)
    assert await prune(store) == 0
    await store.run(store.ops.replay([parent]))
    assert await prune(store) == 0
    assert (await store.claim_and_settle(worker)).task_id == parent
    await store.run(store.ops.cancel([child]))
    await store.advance(50)
    assert await store.run(store.ops.prune(SHORT)) == Pruned(0, more=False)
    await store.advance(51)
    assert await store.run(store.ops.prune(SHORT)) == Pruned(2, more=False)


async def test_the_retention_becomes_longer_meanwhile(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    await store.claim_and_settle(worker)
    assert await prune(store) == 0
    assert await store.run(store.ops.prune(Retention(1_000))) == Pruned(0, more=False)
    assert (await store.claim_and_settle(worker)).task_id == child
    assert await store.run(store.ops.prune(Retention(1_000))) == Pruned(0, more=False)
    assert await store.run(store.ops.prune(SHORT)) == Pruned(1, more=False)


async def test_an_operator_may_delete_it(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    await store.claim_and_settle(worker)
    (deleted,) = await store.run(store.ops.delete([parent]))
    assert deleted.applied
    assert (await store.claim_and_settle(worker)).task_id == child
    assert await prune(store) == 1


async def test_tasks_that_are_kept_do_not_keep_others(store: World) -> None:
    """However many of them are older than what can go."""
    worker = await store.worker(lease=LEASE)
    count = 2 * limits.BATCH + 100
    kept: list[str] = []
    for part in (1, 2):
        parents = new_ids(count // 2)
        await store.submit_all(
            [
                *(new_task("work", task_id=each) for each in parents),
                new_task("late", depends_on=parents[:300], delay_seconds=50_000),
                new_task("later", depends_on=parents[300:], delay_seconds=60_000 * part),
            ][: limits.SUBMIT_BATCH]
        )
        kept += parents
    while claimed := await store.claim(worker, limits.BATCH):
        await complete(store, claimed)
    await store.advance(1)
    free = await store.submit_all([new_task("work") for _ in range(50)])
    await complete(store, await store.claim(worker, 50))
    assert await prune(store) == 50
    assert await store.run(store.ops.get(free)) == [None] * 50
    assert await prune(store) == 0
    found = await store.run(store.ops.heads(kept[: limits.SUBMIT_BATCH]))
    assert all(each is not None for each in found)
    await store.advance(50_000)
    await complete(store, await store.claim(worker, 10))  # the first dependents
    assert await prune(store) == 600 + 2
    await store.advance(80_000)
    await complete(store, await store.claim(worker, 10))
    assert await prune(store) == count - 600 + 2
    assert await store.census() == {}


async def test_more_dependents_than_are_looked_at_once(store: World) -> None:
    worker = await store.worker(lease=LEASE)
    parent = await store.submit()
    await store.claim_and_settle(worker)
    count = retention.LOOKED_AT + 100
    for start in range(0, count, limits.BATCH):
        part = range(start, min(start + limits.BATCH, count))
        await store.submit_all([new_task("work", depends_on=[parent]) for _ in part])
    last = await store.submit(depends_on=[parent], delay_seconds=50_000)
    while claimed := await store.claim(worker, limits.BATCH):
        await complete(store, claimed)
    for _ in range(5):
        await prune(store)
        assert await store.state(parent) is State.COMPLETED
    await store.advance(50_000)
    assert (await store.claim_and_settle(worker)).task_id == last
    for _ in range(5):
        await prune(store)
    assert await store.census() == {}
