"""Dependencies and unique keys on PostgreSQL, while transactions of others are open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlane.core.errors import StoreBusy
from fairlane.core.flow import Flow, writes
from fairlane.core.model import NewTask, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from fairlane.engines.postgres import dependents
from tests.conftest import Servers
from tests.fixtures.stores import World, opened, settlement

BAD = Failed(TaskError("x"), after=0)
AT_ONCE = Retention(0, 0, 0, 0, 0, 0)


@pytest.fixture
async def store(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    async with opened("postgres-newest", servers, tmp_path, patience=1.0) as world:
        yield world


class Regret(Exception):
    """What a caller raises that changed its mind."""


def mail(to: str, mode: Mode = Mode.EXISTING, **options: Any) -> NewTask:
    how = Unique(arguments=("to",), mode=mode, **options)
    return new_task("mail", {"to": to}, unique=how)


def rows(store: World, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(store.url) as connection:
        return connection.execute(sql).fetchall()


@writes
def _release_left_over(_: None) -> Flow[object]:
    return (yield from dependents.release_left_over())


# --- dependencies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["completed", "cancelled"])
async def test_a_child_in_an_open_transaction_holds_nobody_up(store: World, ending: str) -> None:
    """Its parent dependents before anyone can see the child; the next claim finds out."""
    worker = await store.worker()
    parent = await store.submit()
    task = await store.claim_one(worker)
    child = new_task("child", depends_on=[parent])
    async with store.backend.driver.transaction() as transaction:
        (answer,) = await transaction.run(store.ops.submit([child]))
        assert answer.state is State.SCHEDULED
        async with asyncio.timeout(3):
            if ending == "completed":
                assert await store.settle(task) is Verdict.APPLIED
            else:
                await store.run(store.ops.cancel([parent]))
            assert await store.claim(worker) == []
    assert await store.state(child.task_id) is State.SCHEDULED
    claimed = await store.claim(worker)
    if ending == "completed":
        assert [each.task_id for each in claimed] == [child.task_id]
    else:
        assert claimed == []
        assert await store.state(child.task_id) is State.CANCELLED
    assert rows(store, "SELECT FROM fairlane.bonds") == []


async def test_a_parent_is_marked_once_its_child_is_committed(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    child = new_task("child", depends_on=[parent])
    async with store.backend.driver.transaction() as transaction:
        await transaction.run(store.ops.submit([child]))
    assert rows(store, "SELECT fresh FROM fairlane.bonds") == [(True,)]
    task = await store.claim_one(worker)
    assert rows(store, "SELECT fresh FROM fairlane.bonds") == [(False,)]
    await store.settle(task)
    assert await store.state(child.task_id) is State.QUEUED


async def test_nothing_is_left_of_a_child_that_was_rolled_back(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()

    async def change_of_mind() -> None:
        async with store.backend.driver.transaction() as transaction:
            child = new_task("child", depends_on=[parent])
            await transaction.run(store.ops.submit([child]))
            raise Regret

    with pytest.raises(Regret):
        await change_of_mind()
    await store.claim_and_settle(worker)
    assert await store.census() == {State.COMPLETED: 1}
    assert rows(store, "SELECT FROM fairlane.bonds") == []


async def test_a_parent_is_not_pruned_from_under_its_child(store: World) -> None:
    """Nobody could tell any more how it ended."""
    worker = await store.worker()
    parent = await store.submit()
    task = await store.claim_one(worker)
    child = new_task("child", depends_on=[parent])
    async with store.backend.driver.transaction() as transaction:
        await transaction.run(store.ops.submit([child]))
        await store.settle(task)
        assert (await store.run(store.ops.prune(AT_ONCE))).tasks == 0
    assert (await store.run(store.ops.prune(AT_ONCE))).tasks == 0
    assert (await store.claim_and_settle(worker)).task_id == child.task_id
    await store.advance(1)
    assert (await store.run(store.ops.prune(AT_ONCE))).tasks == 2
    assert await store.run(store.ops.get([parent])) == [None]
    assert rows(store, "SELECT FROM fairlane.dependents") == []
    assert rows(store, "SELECT FROM fairlane.ended_parents") == []


async def test_a_locked_child_is_left_for_later(store: World) -> None:
    """A parent's worker does not wait for whoever is at its child."""
    worker = await store.worker()
    parent = await store.submit()
    child = await store.submit("child", depends_on=[parent])
    task = await store.claim_one(worker)
    with psycopg.connect(store.url) as stranger:
        stranger.execute("SELECT FROM fairlane.waiting FOR UPDATE")
        async with asyncio.timeout(3):
            assert await store.settle(task) is Verdict.APPLIED
            grant = await store.ask(worker)
        assert (grant.tasks, grant.next_due_in) == ([], None)
        assert rows(store, "SELECT state FROM fairlane.ended_parents") == [(5,)]
        stranger.rollback()
    assert (await store.claim_one(worker)).task_id == child


async def test_two_parents_that_end_at_once(store: World) -> None:
    one, two = store.processes(2)
    worker = await store.worker()
    for _ in range(20):
        parents = await store.submit_all([new_task("parent") for _ in range(2)])
        child = await store.submit("child", depends_on=parents)
        first, second = await store.claim(worker, 2)
        await asyncio.gather(
            one.run(one.ops.settle([settlement(first)])),
            two.run(two.ops.settle([settlement(second)])),
        )
        task = await store.claim_one(worker)
        assert task.task_id == child
        await store.settle(task)


async def test_a_parent_counts_as_it_first_ended(store: World) -> None:
    """It is replayed, and even gets another child, before all that waited has been seen to."""
    worker = await store.worker()
    parent = await store.submit("parent")
    children: list[str] = []
    for _ in range(2):
        batch = [new_task("child", depends_on=[parent]) for _ in range(400)]
        children += await store.submit_all(batch)
    await store.run(store.ops.cancel([parent]))
    assert rows(store, "SELECT state FROM fairlane.ended_parents") == [(8,)]
    await store.run(store.ops.replay([parent]))
    late = await store.submit("late", depends_on=[parent])
    states = {task.status for task in await store.run(store.ops.get(children)) if task}
    assert states == {State.CANCELLED}
    await store.claim_and_settle(worker)
    assert (await store.claim_one(worker)).task_id == late


async def test_a_key_taken_again_is_not_given_up_by_an_earlier_end(store: World) -> None:
    """What waited for its first end is still being seen to when it has long been replayed."""
    worker = await store.worker()
    (first,) = await store.run(store.ops.submit([mail("a")]))
    for _ in range(2):
        batch = [new_task("child", depends_on=[first.task_id]) for _ in range(400)]
        await store.submit_all(batch)
    await store.run(store.ops.cancel([first.task_id]))
    await store.run(store.ops.replay([first.task_id]))
    await store.claim(worker, 1)
    assert rows(store, "SELECT FROM fairlane.ended_parents") == []
    (second,) = await store.run(store.ops.submit([mail("a")]))
    assert (second.task_id, second.known) == (first.task_id, True)


# --- unique keys ----------------------------------------------------------------------------------


async def test_a_key_that_is_rolled_back_is_free_for_whoever_waits(store: World) -> None:
    async def change_of_mind(taken: asyncio.Event) -> None:
        async with store.backend.driver.transaction() as transaction:
            await transaction.run(store.ops.submit([mail("a")]))
            taken.set()
            await asyncio.sleep(0.3)
            raise Regret

    taken = asyncio.Event()
    first = asyncio.create_task(change_of_mind(taken))
    await taken.wait()
    (answer,) = await store.run(store.ops.submit([mail("a")]))
    assert not answer.known
    with pytest.raises(Regret):
        await first
    assert await store.census() == {State.QUEUED: 1}


@pytest.mark.parametrize("key", ["unique", "idempotency"])
async def test_a_key_in_an_open_transaction_holds_up_only_those_who_want_it(
    store: World, key: str
) -> None:
    def wanted() -> NewTask:
        return mail("a") if key == "unique" else new_task("mail", {}, idempotency_key="k")

    async with store.backend.driver.transaction() as transaction:
        await transaction.run(store.ops.submit([wanted()]))
        async with asyncio.timeout(3):
            await store.submit("plain")
            await store.run(store.ops.submit([mail("b")]))
            await store.submit("other", idempotency_key="other")
        with pytest.raises(StoreBusy):
            await store.run(store.ops.submit([wanted()]))
    (answer,) = await store.run(store.ops.submit([wanted()]))
    assert answer.known


async def test_who_only_asks_for_a_double_locks_nothing(store: World) -> None:
    worker = await store.worker()
    (first,) = await store.run(store.ops.submit([mail("a")]))
    task = await store.claim_one(worker)
    async with store.backend.driver.transaction() as transaction:
        (answer,) = await transaction.run(store.ops.submit([mail("a")]))
        assert (answer.task_id, answer.known) == (first.task_id, True)
        async with asyncio.timeout(3):
            assert await store.settle(task, Completed(b"1")) is Verdict.APPLIED
            (second,) = await store.run(store.ops.submit([mail("a")]))
            assert not second.known


async def test_a_task_ends_while_its_key_is_being_taken_over(store: World) -> None:
    """The period is over, so another may have the key; the first one's end waits for nobody."""
    worker = await store.worker()
    await store.run(store.ops.submit([mail("a", period=10)]))
    task = await store.claim_one(worker)
    await store.advance(20)
    async with store.backend.driver.transaction() as transaction:
        (second,) = await transaction.run(store.ops.submit([mail("a", period=10)]))
        assert not second.known
        async with asyncio.timeout(3):
            assert await store.settle(task) is Verdict.APPLIED
            await store.run(store.ops.delete([task.task_id]))
    (third,) = await store.run(store.ops.submit([mail("a", period=10)]))
    assert (third.task_id, third.known) == (second.task_id, True)


# --- the rest -------------------------------------------------------------------------------------


async def test_a_failed_attempt_of_a_linked_task(store: World) -> None:
    """Retries, snoozes and releases carry on what a task is linked to."""
    worker = await store.worker()
    (first,) = await store.run(store.ops.submit([mail("a")]))
    child = await store.submit("child", depends_on=[first.task_id])
    await store.claim_and_settle(worker, BAD)
    await store.claim_and_settle(worker)
    assert await store.state(child) is State.QUEUED
    assert rows(store, "SELECT FROM fairlane.uniques") == []


async def test_readers_of_the_journal_miss_no_transaction_that_was_open(store: World) -> None:
    """Nor does clearing away what is old move them past it."""
    await store.submit("early")
    async with store.backend.driver.transaction() as transaction:
        (answer,) = await transaction.run(store.ops.submit([new_task("slow")]))
        await store.submit("fast")
        tail = await store.run(store.ops.tail())
        await store.run(store.ops.prune(AT_ONCE))
        assert (await store.run(store.ops.events(tail, 10))).events == []
    news = await store.run(store.ops.events(tail, 10))
    assert [event.type for event in news.events] == ["slow", "fast"]
    assert news.events[0].task_id == answer.task_id
    assert not news.reset


async def test_nothing_to_release_left_over(store: World) -> None:
    assert await store.run(_release_left_over(None)) == dependents.Resolved(
        released=False, budget=500, more=False
    )
