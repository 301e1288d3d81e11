"""Whose tasks they are: owners are kept and found, and bounds hold for whatever is done."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core.bounded import BoundOperations
from fairlane.core.errors import DuplicateTask, TaskIdTaken, UnknownDependency
from fairlane.core.filters import EVERYTHING, new_filter
from fairlane.core.model import Accepted, NewWorker, Report, Start, TaskError, Verdict
from fairlane.core.outcomes import Failed
from fairlane.core.ownership import Bounds, stamped
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

ACME, OTHER = Bounds("acme", own=True), Bounds("other", own=True)
BLUE = Bounds("blue", queues=frozenset({"a", "b"}), tags={"team": "blue"})
LONG = "\N{ROCKET}" * 255
"""As long as a subject or a key may be, in characters of four bytes."""


def bound(store: World, bounds: Bounds) -> BoundOperations:
    return BoundOperations(store.ops, bounds)


async def submitted(store: World, bounds: Bounds, **options: Any) -> Accepted:
    """A task of a bound token."""
    task = bounds.own_task(new_task("work", options.pop("payload", None), **options))
    (answer,) = await store.run(bound(store, bounds).submit([task]))
    return answer


async def found(store: World, bounds: Bounds, **wanted: Any) -> set[str]:
    page = await store.run(bound(store, bounds).page(new_filter(**wanted), 100))
    return {task.task_id for task in page.tasks}


async def test_the_owner_of_a_task_stays_through_its_life(store: World) -> None:
    task = stamped(new_task("work", max_retries=1, retry_policy=RetryPolicy(base=1.0)), "acme")
    await store.run(store.ops.submit([task]))
    worker = await store.worker()
    owners = []
    for _ in range(2):
        claimed = await store.claim_one(worker)
        assert claimed.spec.owner == "acme"
        await store.settle(claimed, Failed(TaskError("broken")))
        owners.append((await store.task(task.task_id)).owner)
        await store.advance(60)
    assert await store.state(task.task_id) is State.DEAD_LETTER
    await store.run(store.ops.replay([task.task_id]))
    await store.claim_and_settle(worker)
    owners.append((await store.task(task.task_id)).owner)
    assert owners == ["acme"] * 3
    assert (await store.task(await store.submit())).owner is None


async def test_tasks_are_found_by_owner(store: World) -> None:
    names = ["acme", "Acme", "a", 'a"b', "größe 10", LONG]
    ids = {}
    for name in names:
        task = stamped(new_task("work", tags={"owner": "acme", "n": "1"}), name)
        ids[name] = (await store.submit_all([task]))[0]
    await store.submit(tags={"acme": "owner"})
    for name in names:
        chosen = new_filter(owner=name)
        page = await store.run(store.ops.page(chosen, 10))
        assert [(task.task_id, task.owner) for task in page.tasks] == [(ids[name], name)]
        total = await store.run(store.ops.total(chosen))
        assert (total.count, total.exact) == (1, True)
    assert not (await store.run(store.ops.page(new_filter(owner="nobody"), 10))).tasks
    both = new_filter(owner="acme", tags={"n": "2"})
    assert not (await store.run(store.ops.page(both, 10))).tasks


async def test_keys_belong_to_subjects(store: World) -> None:
    unbound = await store.submit(idempotency_key="k")
    mine = await submitted(store, ACME, idempotency_key="k")
    theirs = await submitted(store, OTHER, payload={"other": True}, idempotency_key="k")
    assert not mine.known
    assert not theirs.known
    assert len({unbound, mine.task_id, theirs.task_id}) == 3
    for task_id in (unbound, mine.task_id, theirs.task_id):
        assert (await store.task(task_id)).idempotency_key == "k", "as it was given"
    again = await submitted(store, ACME, idempotency_key="k")
    assert (again.task_id, again.known) == (mine.task_id, True)
    await store.run(store.ops.cancel([mine.task_id]))
    await store.run(store.ops.delete([mine.task_id]))
    fresh = await submitted(store, ACME, idempotency_key="k")
    assert not fresh.known, "deletion frees the key"
    again = await submitted(store, OTHER, payload={"other": True}, idempotency_key="k")
    assert again.task_id == theirs.task_id


async def test_the_longest_key_of_the_longest_subject(store: World) -> None:
    whose = Bounds(LONG, own=True, tags={LONG: LONG})
    first = await submitted(store, whose, idempotency_key=LONG)
    again = await submitted(store, whose, idempotency_key=LONG)
    assert (again.task_id, again.known) == (first.task_id, True)
    task = await store.task(first.task_id)
    assert (task.owner, task.idempotency_key, task.tags) == (LONG, LONG, {LONG: LONG})


async def test_unique_keys_belong_to_subjects(store: World) -> None:
    unbound = await store.submit(unique=True)
    mine = await submitted(store, ACME, unique=True)
    theirs = await submitted(store, OTHER, unique=True)
    assert len({unbound, mine.task_id, theirs.task_id}) == 3
    again = await submitted(store, ACME, unique=True)
    assert (again.task_id, again.known) == (mine.task_id, True)
    with pytest.raises(DuplicateTask):
        await submitted(store, ACME, unique=Unique(mode=Mode.REJECT))
    replacing = await submitted(store, OTHER, unique=Unique(mode=Mode.REPLACE))
    assert not replacing.known
    assert await store.state(theirs.task_id) is State.CANCELLED
    assert await store.state(mine.task_id) is State.QUEUED
    assert await store.state(unbound) is State.QUEUED


async def test_an_id_that_is_taken_tells_nothing(store: World) -> None:
    theirs = await submitted(store, OTHER)
    before = await store.task(theirs.task_id)
    tasks = [
        ACME.own_task(new_task("work")),
        ACME.own_task(new_task("work", task_id=theirs.task_id)),
    ]
    with pytest.raises(TaskIdTaken) as caught:
        await store.run(bound(store, ACME).submit(tasks))
    assert caught.value.message == TaskIdTaken().message
    assert await store.task(theirs.task_id) == before
    assert await found(store, ACME) == set(), "all or none"
    mine = await submitted(store, ACME)
    again = await submitted(store, ACME, task_id=mine.task_id)
    assert (again.task_id, again.known) == (mine.task_id, True)


async def test_a_parent_outside_is_unknown(store: World) -> None:
    theirs, mine = await submitted(store, OTHER), await submitted(store, ACME)
    told = []
    for parent in (theirs.task_id, "018f5e2a-7c3b-7d10-8a2e-5b6c7d8e9f01"):
        with pytest.raises(UnknownDependency) as caught:
            await submitted(store, ACME, depends_on=[mine.task_id, parent])
        told.append(caught.value.message)
    assert told[0] == told[1]
    child = await submitted(store, ACME, depends_on=[mine.task_id])
    assert child.state is State.SCHEDULED
    pair = [ACME.own_task(new_task("work")) for _ in range(2)]
    second = ACME.own_task(new_task("work", depends_on=[pair[0].task_id]))
    answers = await store.run(bound(store, ACME).submit([pair[0], second]))
    assert [each.state for each in answers] == [State.QUEUED, State.SCHEDULED]


async def test_what_is_outside_is_neither_read_nor_changed(store: World) -> None:
    theirs = [(await submitted(store, OTHER)).task_id for _ in range(2)]
    theirs.append(await store.submit())
    mine = (await submitted(store, ACME)).task_id
    ops = bound(store, ACME)
    read = await store.run(ops.get([*theirs, mine]))
    assert [task and task.task_id for task in read] == [None, None, None, mine]
    assert await found(store, ACME) == {mine}
    assert (await store.run(ops.total(EVERYTHING))).count == 1
    assert (await store.run(ops.find(EVERYTHING, 10))).task_ids == [mine]
    before = await store.run(store.ops.get(theirs))
    changes: list[Any] = [ops.cancel, ops.replay, ops.delete]
    for change in changes:
        answers = await store.run(change(theirs))
        assert [(each.applied, each.state) for each in answers] == [(False, None)] * 3
    first, last = await store.run(ops.cancel([theirs[0], mine]))
    assert (first.applied, first.state) == (False, None)
    assert (last.applied, last.state) == (True, State.QUEUED)
    for sweep in (ops.replay_where, ops.cancel_where, ops.delete_where):
        assert (await store.run(sweep(EVERYTHING))).matched <= 1, "its own"
    assert await store.run(store.ops.get(theirs)) == before
    assert await store.run(ops.why(theirs[0])) is None
    assert await store.run(ops.position([theirs[0]])) == [None]


async def test_queues_and_tags(store: World) -> None:
    mine = (await submitted(store, BLUE, queue="a")).task_id
    other_queue = await store.submit(queue="c", tags={"team": "blue"})
    other_team = await store.submit(queue="a", tags={"team": "red"})
    somebodys = await store.submit(queue="b", tags={"team": "blue", "x": "y"})
    assert await found(store, BLUE) == {mine, somebodys}
    assert await found(store, BLUE, queue="b") == {somebodys}
    assert (await store.task(mine)).tags == {"team": "blue"}
    ops = bound(store, BLUE)
    assert (await store.run(ops.total(EVERYTHING))).count == 2
    assert (await store.run(ops.cancel_where(EVERYTHING))).applied == 2
    for task_id in (other_queue, other_team):
        assert await store.state(task_id) is State.QUEUED


async def test_workers_of_a_queue(store: World) -> None:
    ops = bound(store, Bounds("crew", queues=frozenset({"a"})))
    held, theirs = await store.submit(queue="a"), await store.submit(queue="b")
    await store.run(ops.register(NewWorker("crew-1")))
    (worker,) = await store.run(store.ops.workers())
    assert worker.queues == frozenset({"a"})
    claimed = await store.claim_one("crew-1", queues=worker.queues)
    assert claimed.task_id == held
    other = await store.worker()
    assert (await store.claim_one(other)).task_id == theirs
    ids = [held, theirs, "018f5e2a-7c3b-7d10-8a2e-5b6c7d8e9f01"]
    expected = [Verdict.APPLIED, Verdict.MISSING, Verdict.MISSING]
    assert await store.run(ops.start("crew-1", [Start(id, 1) for id in ids])) == expected
    assert await store.run(ops.progress("crew-1", [Report(id, 1) for id in ids])) == expected
    assert await store.run(ops.start("crew-1", [Start(held, 2)])) == [Verdict.STALE]
