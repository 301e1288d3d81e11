"""Unique tasks: while one is there, there is no second of its kind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.core.errors import DuplicateTask
from fairlane.core.model import Accepted, NewTask, TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.states import TERMINAL, WAITING, State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from tests.fixtures.stores import World

FATAL = Failed(TaskError("no", retriable=False))


def mail(to: str, mode: Mode = Mode.EXISTING, **options: Any) -> NewTask:
    how = Unique(arguments=("to",), mode=mode, **options)
    return new_task("mail", {"to": to, "text": "any"}, unique=how)


async def submit_one(store: World, task: NewTask) -> Accepted:
    (answer,) = await store.run(store.ops.submit([task]))
    return answer


async def test_the_existing_task_is_answered(store: World) -> None:
    first = await submit_one(store, mail("a"))
    assert not first.known
    second = await submit_one(store, mail("a"))
    assert (second.task_id, second.known, second.state) == (first.task_id, True, State.QUEUED)
    assert second.created_at == first.created_at
    other = await submit_one(store, mail("b"))
    assert not other.known
    assert await store.census() == {State.QUEUED: 2}


async def test_a_double_may_be_refused(store: World) -> None:
    first = await submit_one(store, mail("a"))
    with pytest.raises(DuplicateTask):
        await store.run(store.ops.submit([new_task("innocent"), mail("a", Mode.REJECT)]))
    assert await store.census() == {State.QUEUED: 1}
    assert await store.state(first.task_id) is State.QUEUED


async def test_a_waiting_task_may_be_replaced(store: World) -> None:
    first = await submit_one(store, mail("a"))
    child = await store.submit("child", depends_on=[first.task_id])
    second = await submit_one(store, mail("a", Mode.REPLACE))
    assert not second.known
    old = await store.task(first.task_id)
    assert old.status is State.CANCELLED
    assert old.error is not None
    assert (old.error.code, old.error.reason) == ("REPLACED", "replaced")
    assert await store.state(child) is State.CANCELLED
    assert await store.state(second.task_id) is State.QUEUED
    again = await submit_one(store, mail("a"))
    assert (again.task_id, again.known) == (second.task_id, True)
    assert await store.census() == {State.CANCELLED: 2, State.QUEUED: 1}


async def test_what_runs_cannot_be_replaced(store: World) -> None:
    worker = await store.worker()
    await submit_one(store, mail("a"))
    await store.claim_one(worker)
    with pytest.raises(DuplicateTask):
        await submit_one(store, mail("a", Mode.REPLACE))
    assert await store.census() == {State.EXECUTING: 1}


@pytest.mark.parametrize("ending", ["completed", "failed", "dead_letter", "cancelled"])
async def test_the_end_frees_the_key(store: World, ending: str) -> None:
    worker = await store.worker()
    first = await submit_one(store, mail("a"))
    if ending == "cancelled":
        await store.run(store.ops.cancel([first.task_id]))
    elif ending == "completed":
        await store.claim_and_settle(worker)
    elif ending == "failed":
        await store.claim_and_settle(worker, FATAL)
    else:
        for _ in range(4):
            await store.claim_and_settle(worker, Failed(TaskError("x"), after=0))
    assert await store.state(first.task_id) == ending
    second = await submit_one(store, mail("a", Mode.REJECT))
    assert not second.known
    third = await submit_one(store, mail("a"))
    assert third.task_id == second.task_id


async def test_a_retry_keeps_the_key(store: World) -> None:
    worker = await store.worker()
    first = await submit_one(store, mail("a"))
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=100))
    second = await submit_one(store, mail("a"))
    assert (second.task_id, second.state) == (first.task_id, State.RETRYING)


async def test_states_of_ones_own_choice(store: World) -> None:
    """Unique until it starts; unique for as long as anything is known of it."""
    worker = await store.worker()
    waiting = await submit_one(store, mail("a", states=WAITING))
    forever = await submit_one(store, mail("a", states=frozenset(State)))
    assert not forever.known
    assert (await submit_one(store, mail("a", states=WAITING))).task_id == waiting.task_id
    for task in await store.claim(worker):
        if task.task_id == forever.task_id:
            await store.settle(task)
    assert not (await submit_one(store, mail("a", states=WAITING))).known
    kept = await submit_one(store, mail("a", states=frozenset(State)))
    assert (kept.task_id, kept.state) == (forever.task_id, State.COMPLETED)
    with pytest.raises(DuplicateTask):
        await submit_one(store, mail("a", Mode.REPLACE, states=frozenset(State)))
    await store.run(store.ops.delete([forever.task_id]))
    assert not (await submit_one(store, mail("a", states=frozenset(State)))).known


async def test_within_a_period(store: World) -> None:
    first = await submit_one(store, mail("a", period=100))
    await store.advance(90)
    assert (await submit_one(store, mail("a", period=100))).task_id == first.task_id
    await store.advance(20)
    second = await submit_one(store, mail("a", period=100))
    assert not second.known
    # The one that came last holds the key: the first may end without freeing it.
    await store.run(store.ops.cancel([first.task_id]))
    assert (await submit_one(store, mail("a"))).task_id == second.task_id


async def test_two_in_one_batch(store: World) -> None:
    answers = await store.run(store.ops.submit([mail("a"), mail("b"), mail("a")]))
    assert [answer.known for answer in answers] == [False, False, True]
    assert answers[2].task_id == answers[0].task_id
    for mode in (Mode.REJECT, Mode.REPLACE):
        with pytest.raises(DuplicateTask):
            await store.run(store.ops.submit([mail("c"), mail("c", mode)]))
    assert await store.census() == {State.QUEUED: 2}


async def test_the_earlier_one_of_a_batch_is_stored(store: World) -> None:
    """However an engine sorts what it stores: what comes first in the batch comes first."""
    batch = [
        new_task("other", priority=3),
        new_task("mail", priority=9, unique=True, idempotency_key="k"),
        new_task("mail", priority=3, unique=True),
        new_task("mail", priority=3, idempotency_key="k"),
    ]
    answers = await store.run(store.ops.submit(batch))
    assert [answer.known for answer in answers] == [False, False, True, True]
    assert {answer.task_id for answer in answers[1:]} == {batch[1].task_id}


async def test_a_batch_is_one_moment_for_what_it_replaces(store: World) -> None:
    first = await submit_one(store, mail("a"))
    strict = new_task("child", depends_on=[first.task_id])
    tolerant = new_task("child", depends_on=[first.task_id], on_parent_failure="continue")
    answers = await store.run(store.ops.submit([strict, tolerant, mail("a", Mode.REPLACE)]))
    states = [answer.state for answer in answers]
    assert states == [State.CANCELLED, State.QUEUED, State.QUEUED]
    assert (await store.task(tolerant.task_id)).version == 1  # it never waited


async def test_a_key_is_taken_in_a_batch_whatever_becomes_of_its_holder(store: World) -> None:
    parent = await store.submit("parent")
    await store.run(store.ops.cancel([parent]))
    doomed = new_task("mail", {"to": "a"}, unique=True, depends_on=[parent])
    double = new_task("mail", {"to": "a"}, unique=True)
    answers = await store.run(store.ops.submit([doomed, double]))
    assert [(answer.task_id, answer.known, answer.state) for answer in answers] == [
        (doomed.task_id, False, State.CANCELLED),
        (doomed.task_id, True, State.CANCELLED),
    ]
    later = await submit_one(store, new_task("mail", {"to": "a"}, unique=True))
    assert not later.known


async def test_a_replay_takes_the_key_again_if_it_is_free(store: World) -> None:
    first = await submit_one(store, mail("a"))
    await store.run(store.ops.cancel([first.task_id]))
    await store.run(store.ops.replay([first.task_id]))
    assert (await submit_one(store, mail("a"))).task_id == first.task_id
    await store.run(store.ops.cancel([first.task_id]))
    second = await submit_one(store, mail("a"))
    await store.run(store.ops.replay([first.task_id]))
    assert await store.census() == {State.QUEUED: 2}
    assert (await submit_one(store, mail("a"))).task_id == second.task_id
    # Its end does not free what it does not hold.
    await store.run(store.ops.cancel([first.task_id]))
    assert (await submit_one(store, mail("a"))).task_id == second.task_id


async def test_one_of_several_that_are_replayed_takes_the_key(store: World) -> None:
    ids = []
    for _ in range(3):
        ids.append((await submit_one(store, mail("a"))).task_id)
        await store.run(store.ops.cancel(ids[-1:]))
    answers = await store.run(store.ops.replay(ids))
    assert [answer.applied for answer in answers] == [True] * 3
    answer = await submit_one(store, mail("a"))
    assert answer.known
    assert answer.task_id in ids
    await store.run(store.ops.cancel([each for each in ids if each != answer.task_id]))
    assert (await submit_one(store, mail("a"))).task_id == answer.task_id


async def test_an_idempotency_key_comes_first(store: World) -> None:
    task = new_task("mail", {"to": "a"}, unique=Unique(mode=Mode.REJECT), idempotency_key="k")
    first = await submit_one(store, task)
    again = new_task("mail", {"to": "a"}, unique=Unique(mode=Mode.REJECT), idempotency_key="k")
    answer = await submit_one(store, again)
    assert (answer.task_id, answer.known) == (first.task_id, True)


@pytest.mark.parametrize("mode", [Mode.EXISTING, Mode.REJECT])
async def test_one_of_many_at_once(store: World, mode: Mode) -> None:
    backends = store.processes(5)

    async def submit(number: int) -> str | None:
        backend = backends[number % 5]
        try:
            (answer,) = await backend.run(backend.ops.submit([mail("a", mode)]))
        except DuplicateTask:
            return None
        return answer.task_id

    for _ in range(5):
        answers = await asyncio.gather(*(submit(number) for number in range(20)))
        live = {task_id for task_id in answers if task_id is not None}
        assert len(live) == 1
        if mode is Mode.REJECT:
            assert answers.count(None) == 19
        await store.run(store.ops.cancel(list(live)))


async def test_nothing_is_left_behind(store: World) -> None:
    """A key whose period is over goes with its task."""
    worker = await store.worker()
    everything = frozenset(State)
    first = await submit_one(store, mail("a", states=everything))
    await store.claim_and_settle(worker)
    assert await store.state(first.task_id) in TERMINAL
    await store.run(store.ops.delete([first.task_id]))
    second = await submit_one(store, mail("a", states=everything))
    assert not second.known
