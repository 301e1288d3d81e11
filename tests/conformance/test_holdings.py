"""What a worker holds by the store's word, and what becomes of what it does not have."""

from __future__ import annotations

import pytest

from fairlane.core.errors import BatchTooLarge, InvalidCursor, InvalidTaskId
from fairlane.core.holdings import Comparison, Differences, InHand, Run
from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, Start, Verdict
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

NOTHING = Differences([], [])


def run_of(task: Claimed) -> Run:
    return task.task_id, task.attempt


async def held(store: World, worker: str, limit: int = 500) -> set[Run]:
    """All pages."""
    runs: set[Run] = set()
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.holdings(worker, limit, cursor))
        runs.update(page.runs)
        if page.cursor is None:
            return runs
        cursor = page.cursor


async def disowned(store: World, worker: str, *runs: Run) -> list[Verdict]:
    return await store.run(store.ops.disown(worker, runs))


async def test_the_runs_that_a_worker_holds(store: World) -> None:
    worker, other = await store.worker(), await store.worker()
    assert await held(store, worker) == set()
    await store.submit_all([new_task("work") for _ in range(9)])
    mine, theirs = await store.claim(worker, 5), await store.claim(other, 4)
    assert await held(store, worker) == set(map(run_of, mine))
    assert await held(store, other) == set(map(run_of, theirs))
    await store.settle(mine[0])
    await store.run(store.ops.cancel([mine[1].task_id]))
    assert await held(store, worker) == set(map(run_of, mine[2:]))
    assert await held(store, "nobody") == set()


async def test_the_attempt_belongs_to_a_run(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    for attempt in (1, 2, 3):
        task = await store.claim_one(worker)
        assert await held(store, worker) == {(task_id, attempt)}
        assert await disowned(store, worker, run_of(task)) == [Verdict.APPLIED]


async def test_holdings_come_in_pages(store: World) -> None:
    worker, other = await store.worker(), await store.worker()
    await store.submit_all([new_task("work") for _ in range(1000)])
    await store.submit_all([new_task("work") for _ in range(300)])
    runs: set[Run] = set()
    for _ in range(3):
        runs.update(map(run_of, await store.claim(worker, 400)))
    await store.claim(other, 100)
    assert len(runs) == 1200
    for limit in (500, 123):
        assert await held(store, worker, limit) == runs
    first = await store.run(store.ops.holdings(worker, 100))
    assert first.cursor is not None
    assert len(first.runs) < 1200


async def test_a_cursor_that_is_none_is_refused(store: World) -> None:
    worker = await store.worker()
    for cursor in ("", "x", "h", "h-1", "hx", "t" + "0" * 32, "h" + "9" * 40):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.holdings(worker, 10, cursor))


async def test_what_a_worker_does_not_have_goes_back(store: World) -> None:
    """A run that has started costs a retry, as when its worker dies; another costs none."""
    worker = await store.worker()
    ids = await store.submit_all([new_task("work", max_retries=1) for _ in range(2)])
    started, unstarted = await store.claim(worker)
    await store.run(store.ops.start(worker, [Start(started.task_id, 1)]))
    verdicts = await disowned(store, worker, run_of(started), run_of(unstarted))
    assert verdicts == [Verdict.APPLIED] * 2
    tasks = [await store.task(task_id) for task_id in ids]
    assert [task.status for task in tasks] == [State.QUEUED] * 2
    assert [(task.retry_count, task.returns) for task in tasks] == [(1, 0), (0, 1)]
    assert [task.attempts[0].outcome for task in tasks] == ["lost", "returned"]
    assert {task.attempts[0].error and task.attempts[0].error.code for task in tasks} == {
        "WORKER_LOST"
    }
    assert await store.settle(started) is Verdict.STALE
    again = await store.claim(worker)
    assert [task.attempt for task in again] == [2, 2]
    assert [await store.settle(task) for task in again] == [Verdict.APPLIED] * 2


async def test_a_task_that_workers_keep_losing_ends(store: World) -> None:
    worker = await store.worker()
    ids = await store.submit_all([new_task("work", max_retries=2) for _ in range(2)])
    for _ in range(3):
        started, unstarted = sorted(await store.claim(worker), key=run_of)
        await store.start(started)
        await disowned(store, worker, run_of(started), run_of(unstarted))
    last = await store.claim(worker)
    assert len(last) == 1
    await disowned(store, worker, run_of(last[0]))
    tasks = [await store.task(task_id) for task_id in ids]
    assert [task.status for task in tasks] == [State.DEAD_LETTER] * 2
    assert [task.error and task.error.reason for task in tasks] == ["worker_lost"] * 2


async def test_only_the_run_that_is_named_goes_back(store: World) -> None:
    worker, other = await store.worker(), await store.worker()
    await store.submit_all([new_task("work") for _ in range(4)])
    mine, done = await store.claim(worker, 2)
    theirs = await store.claim_one(other)
    await store.settle(done)
    task_id, attempt = run_of(mine)
    waiting = await store.submit()
    verdicts = await disowned(
        store,
        worker,
        (task_id, attempt + 1),
        run_of(theirs),
        run_of(done),
        (waiting, 1),
        (waiting, 0),
        (new_id(), 1),
    )
    assert verdicts == [*[Verdict.STALE] * 5, Verdict.MISSING]
    assert await held(store, worker) == {run_of(mine)}
    assert await held(store, other) == {run_of(theirs)}
    assert await store.state(done.task_id) is State.COMPLETED
    assert await disowned(store, worker) == []


async def test_what_cannot_be_a_run_is_refused(store: World) -> None:
    worker = await store.worker()
    await store.submit()
    task = await store.claim_one(worker)
    with pytest.raises(InvalidTaskId):
        await disowned(store, worker, run_of(task), ("x", 1))
    with pytest.raises(BatchTooLarge):
        await disowned(store, worker, *[run_of(task)] * 501)
    assert await held(store, worker) == {run_of(task)}


async def test_a_slot_is_free_again(store: World) -> None:
    await store.run(store.ops.limit("work", concurrency=1))
    worker = await store.worker()
    await store.submit_all([new_task("work") for _ in range(2)])
    task = await store.claim_one(worker)
    assert await store.claim(worker) == []
    await disowned(store, worker, run_of(task))
    assert (await store.claim_one(worker)).task_id == task.task_id


async def test_a_store_that_lost_an_end_and_a_claim_is_reconciled(store: World) -> None:
    """One run too many and one too few: their number says nothing."""
    worker = await store.worker()
    await store.submit_all([new_task("work") for _ in range(3)])
    ended, healthy, unclaimed = map(run_of, await store.claim(worker))
    await disowned(store, worker, unclaimed)  # by somebody who knows nothing of the worker
    in_hand = InHand(frozenset({healthy, unclaimed}), asked=1, answered=1)
    comparison = Comparison()
    listed = frozenset(await held(store, worker))
    assert comparison.compare(listed, in_hand, in_hand) == NOTHING
    listed = frozenset(await held(store, worker))
    found = comparison.compare(listed, in_hand, in_hand)
    assert found == Differences([ended], [unclaimed])
    assert await disowned(store, worker, *found.unknown) == [Verdict.APPLIED]
    assert await held(store, worker) == {healthy}
    assert await store.census() == {State.EXECUTING: 1, State.QUEUED: 2}


async def test_a_run_that_is_just_being_claimed_stays(store: World) -> None:
    worker = await store.worker()
    await store.submit()
    comparison = Comparison()
    waiting = InHand(frozenset(), asked=1, answered=0)
    run = run_of(await store.claim_one(worker))  # the answer is on its way
    for _ in range(2):
        listed = frozenset(await held(store, worker))
        found = comparison.compare(listed, waiting, waiting)
        await disowned(store, worker, *found.unknown)
    arrived = InHand(frozenset({run}), asked=1, answered=1)
    found = comparison.compare(frozenset(await held(store, worker)), arrived, arrived)
    assert found == NOTHING
    assert await held(store, worker) == {run}
