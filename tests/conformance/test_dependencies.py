"""Tasks that wait for other tasks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fairlane.core import limits
from fairlane.core.errors import UnknownDependency
from fairlane.core.ids import new_id, new_ids
from fairlane.core.model import Claimed, NewTask, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed, Outcome, Snoozed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, get_all, settlement

FATAL = Failed(TaskError("no", retriable=False))


async def run_all(store: World, worker: str) -> list[str]:
    """Claim and complete until nothing is left; the ids in the order they ran."""
    ran: list[str] = []
    for _ in range(1_000):
        grant = await store.ask(worker, 100)
        if not grant.tasks and grant.next_due_in != 0.0:
            return ran
        await store.run(store.ops.settle([settlement(task) for task in grant.tasks]))
        ran += [task.task_id for task in grant.tasks]
    raise AssertionError("there is always more")


async def test_a_child_waits_for_its_parents(store: World) -> None:
    worker = await store.worker()
    parents = [await store.submit() for _ in range(2)]
    child = await store.submit("child", depends_on=parents)
    task = await store.task(child)
    assert (task.status, task.depends_on, task.tolerant) == (
        State.SCHEDULED,
        tuple(parents),
        False,
    )
    assert await store.census() == {State.QUEUED: 2, State.SCHEDULED: 1}
    first = await store.claim_one(worker)
    second = await store.claim_one(worker)
    assert (await store.ask(worker)).tasks == []
    assert await store.settle(first) is Verdict.APPLIED
    assert await store.state(child) is State.SCHEDULED
    assert await store.claim(worker) == []
    await store.advance(5)
    assert await store.settle(second) is Verdict.APPLIED
    released = await store.task(child)
    assert released.status is State.QUEUED
    assert released.ready_at == released.updated_at > task.ready_at
    assert released.version == task.version + 1
    assert (await store.claim_one(worker)).task_id == child
    assert await store.census() == {State.EXECUTING: 1, State.COMPLETED: 2}


async def test_a_released_child_is_told_and_waiters_are_woken(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    await store.submit(depends_on=[parent])
    task = await store.claim_one(worker)
    wakeup = await store.backend.driver.listen()
    tail = await store.run(store.ops.tail())
    await store.settle(task)
    assert await wakeup.wait(10)
    await wakeup.aclose()
    events = (await store.run(store.ops.events(tail, 100))).events
    assert [event.verb for event in events] == ["complete", "due"]


async def test_a_parent_that_completed_long_ago(store: World) -> None:
    parent = await store.submit()
    await store.claim_and_settle(await store.worker())
    (answer,) = await store.run(store.ops.submit([new_task("child", depends_on=[parent])]))
    assert answer.state is State.QUEUED
    assert await store.state(answer.task_id) is State.QUEUED


async def test_parents_of_the_same_batch(store: World) -> None:
    worker = await store.worker()
    ids = new_ids(3)
    batch = [
        new_task("a", task_id=ids[0]),
        new_task("b", task_id=ids[1], depends_on=[ids[0]]),
        new_task("c", task_id=ids[2], depends_on=ids[:2]),
    ]
    answers = await store.run(store.ops.submit(batch))
    assert [answer.state for answer in answers] == [
        State.QUEUED,
        State.SCHEDULED,
        State.SCHEDULED,
    ]
    # The same batch again changes nothing.
    again = await store.run(store.ops.submit(batch))
    assert [(answer.task_id, answer.known) for answer in again] == [(each, True) for each in ids]
    assert await run_all(store, worker) == ids


@pytest.mark.parametrize("position", ["missing", "itself", "later"])
async def test_parents_that_do_not_exist(store: World, position: str) -> None:
    child, other = new_id(), new_id()
    parent = {"missing": new_id(), "itself": child, "later": other}[position]
    batch = [
        new_task("innocent"),
        new_task("child", task_id=child, depends_on=[parent]),
        new_task("later", task_id=other),
    ]
    with pytest.raises(UnknownDependency):
        await store.run(store.ops.submit(batch))
    assert await store.census() == {}
    assert await store.run(store.ops.get([task.task_id for task in batch])) == [None] * 3


@pytest.mark.parametrize("ending", ["failed", "dead_letter", "cancelled", "expired"])
async def test_a_parent_that_did_not_complete_dooms_what_waits(store: World, ending: str) -> None:
    worker = await store.worker()
    soon = datetime.now(UTC) + timedelta(seconds=3_000)
    parent = await store.submit("parent", max_retries=0, expires_at=soon)
    child = await store.submit("child", depends_on=[parent])
    grandchild = await store.submit("grandchild", depends_on=[child])
    tolerant = await store.submit("tolerant", depends_on=[parent], on_parent_failure="continue")
    later = await store.submit("later", depends_on=[grandchild], on_parent_failure="continue")
    if ending == "failed":
        await store.claim_and_settle(worker, FATAL)
    elif ending == "dead_letter":
        await store.claim_and_settle(worker, Failed(TaskError("x")))
    elif ending == "cancelled":
        await store.run(store.ops.cancel([parent]))
    else:
        await store.run(store.ops.pause(True, type="parent"))  # noqa: FBT003
        await store.advance(4_000)
        worker = await store.worker()
        await store.run(store.ops.pause(True))  # noqa: FBT003
        await store.ask(worker)
        await store.run(store.ops.pause(False))  # noqa: FBT003
    for doomed in (child, grandchild):
        task = await store.task(doomed)
        assert task.status is State.CANCELLED
        assert task.error is not None
        assert (task.error.code, task.error.reason) == ("DEPENDENCY_FAILED", "dependency_failed")
        assert task.completed_at is not None
    assert await store.state(tolerant) is State.QUEUED
    assert await store.state(later) is State.QUEUED
    assert {task.task_id for task in await store.claim(worker)} == {tolerant, later}


async def test_a_child_of_a_parent_that_failed_before(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    await store.claim_and_settle(worker, FATAL)
    tail = await store.run(store.ops.tail())
    (answer,) = await store.run(store.ops.submit([new_task("child", depends_on=[parent])]))
    assert answer.state is State.CANCELLED
    task = await store.task(answer.task_id)
    assert task.status is State.CANCELLED
    assert task.error is not None
    assert task.error.reason == "dependency_failed"
    assert await store.census() == {State.FAILED: 1, State.CANCELLED: 1}
    events = (await store.run(store.ops.events(tail, 10))).events
    assert [event.verb for event in events] == ["submit", "cancel"]
    (tolerant,) = await store.run(
        store.ops.submit([new_task("child", depends_on=[parent], on_parent_failure="continue")])
    )
    assert tolerant.state is State.QUEUED


async def test_a_child_that_is_also_delayed(store: World) -> None:
    worker = await store.worker(lease=1_000)
    parent = await store.submit()
    child = await store.submit(depends_on=[parent], delay_seconds=100)
    scheduled = await store.task(child)
    await store.claim_and_settle(worker)
    waiting = await store.task(child)
    assert (waiting.status, waiting.version) == (State.SCHEDULED, scheduled.version)
    grant = await store.ask(worker)
    assert grant.tasks == []
    assert grant.next_due_in == pytest.approx(100, abs=20)
    await store.advance(101)
    task = await store.claim_one(worker)
    assert (task.task_id, task.ready_at) == (child, task.created_at + 100_000_000)


async def test_a_child_is_due_and_its_parent_is_not_done(store: World) -> None:
    worker = await store.worker(lease=1_000)
    parent = await store.submit(delay_seconds=50)
    child = await store.submit(depends_on=[parent], delay_seconds=10)
    await store.advance(20)
    grant = await store.ask(worker)
    assert grant.tasks == []
    assert grant.next_due_in == pytest.approx(30, abs=20)
    await store.advance(40)
    await store.claim_and_settle(worker)
    assert (await store.claim_one(worker)).task_id == child


async def test_an_operator_does_not_wait(store: World) -> None:
    """Replaying a child lets it run at once; what becomes of its parent no longer matters."""
    worker = await store.worker()
    parent = await store.submit()
    child = await store.submit("child", depends_on=[parent])
    await store.run(store.ops.replay([child]))
    assert await store.state(child) is State.QUEUED
    await store.run(store.ops.cancel([parent]))
    assert (await store.claim_one(worker)).task_id == child
    assert await store.census() == {State.CANCELLED: 1, State.EXECUTING: 1}


async def test_a_cancelled_child_stays_cancelled(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    await store.run(store.ops.cancel([child]))
    await store.claim_and_settle(worker)
    assert await store.state(child) is State.CANCELLED
    assert await store.claim(worker) == []


async def test_a_child_may_expire_while_it_waits(store: World) -> None:
    parent = await store.submit()
    soon = datetime.now(UTC) + timedelta(seconds=1_000)
    child = await store.submit(depends_on=[parent], expires_at=soon)
    await store.advance(2_000)
    worker = await store.worker()
    (task,) = await store.claim(worker)
    assert task.task_id == parent
    assert await store.state(child) is State.FAILED
    await store.settle(task)
    assert await store.state(child) is State.FAILED


async def test_a_snooze_or_a_retry_is_no_end(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    child = await store.submit(depends_on=[parent])
    outcomes: list[Outcome] = [Snoozed(0), Failed(TaskError("x"), after=0)]
    for outcome in outcomes:
        await store.claim_and_settle(worker, outcome)
        assert await store.state(child) is State.SCHEDULED
    await store.claim_and_settle(worker, Completed(b"1"))
    assert await store.state(child) is State.QUEUED


async def test_a_lost_parent_dooms_its_child(store: World) -> None:
    worker = await store.worker(lease=10)
    parent = await store.submit(max_retries=0, timeout_seconds=None)
    child = await store.submit(depends_on=[parent])
    task = await store.claim_one(worker)
    await store.start(task)
    await store.advance(11)
    assert await store.reap() == [Verdict.APPLIED]
    assert await store.state(parent) is State.DEAD_LETTER
    assert await store.state(child) is State.CANCELLED


async def test_more_children_than_fit_a_batch(store: World) -> None:
    """What one settlement cannot see to is seen to by the claims that follow."""
    worker = await store.worker()
    parent = await store.submit()
    children: list[str] = []
    for _ in range(2):
        batch = [new_task("child", depends_on=[parent]) for _ in range(limits.BATCH - 200)]
        children += await store.submit_all(batch)
    await store.claim_and_settle(worker)
    assert sorted(await run_all(store, worker)) == sorted(children)
    assert await store.census() == {State.COMPLETED: 1 + len(children)}


async def test_a_doom_that_runs_through_many(store: World) -> None:
    worker = await store.worker()
    ids = new_ids(limits.BATCH + 200)
    chain = [
        new_task("link", task_id=each, depends_on=[before] if before else ())
        for before, each in zip([None, *ids], ids, strict=False)
    ]
    await store.submit_all(chain)
    await store.run(store.ops.cancel([ids[0]]))
    assert await run_all(store, worker) == []
    found = await get_all(store.backend, ids)
    assert {task.status for task in found if task} == {State.CANCELLED}
    assert await store.census() == {State.CANCELLED: len(ids)}


async def test_a_child_submitted_while_its_parent_ends(store: World) -> None:
    """However the two meet, the child runs."""
    one, two = store.processes(2)
    worker = await store.worker()

    async def submit(children: list[NewTask]) -> None:
        for child in children:
            await one.run(one.ops.submit([child]))

    async def settle(claimed: list[Claimed]) -> None:
        for task in reversed(claimed):
            await two.run(two.ops.settle([settlement(task)]))

    for _ in range(25):
        parents = await store.submit_all([new_task("parent") for _ in range(4)])
        claimed = await store.claim(worker, 4)
        children = [new_task("child", depends_on=[parent]) for parent in parents]
        await asyncio.gather(submit(children), settle(claimed))
        assert sorted(await run_all(store, worker)) == [child.task_id for child in children]
