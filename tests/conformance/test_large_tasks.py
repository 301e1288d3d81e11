"""Tasks that are large: batches of them, their heads, and pages that end early."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, TaskIdConflict
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.core.ids import new_id
from fairlane.core.model import NewTask, Report, Task, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement, verdicts_of

LARGE = {"data": "x" * 250_000}


def large_batch(count: int = 40) -> list[NewTask]:
    """Tasks with 100 KB each: of several types and priorities, and some for later. Some engines
    store them in parts."""
    return [
        new_task(
            f"t{n % 3}",
            {"n": n, "data": chr(97 + n % 26) * 100_000},
            priority=1 + n % 2,
            delay_seconds=3_600 if n % 7 == 6 else 0,
        )
        for n in range(count)
    ]


async def test_a_large_batch_is_stored_in_order(store: World) -> None:
    tasks = large_batch()
    accepted = await store.run(store.ops.submit(tasks))
    later = [n % 7 == 6 for n in range(len(tasks))]
    assert [each.task_id for each in accepted] == [task.task_id for task in tasks]
    assert [each.state is State.SCHEDULED for each in accepted] == later
    stored = await store.run(store.ops.get([task.task_id for task in tasks]))
    assert [None if each is None else each.payload for each in stored] == [
        task.payload for task in tasks
    ]
    worker = await store.worker()
    claimed = [await store.claim_one(worker) for _ in range(later.count(False))]
    due = [task for task, waits in zip(tasks, later, strict=True) if not waits]
    expected = sorted(due, key=lambda task: -task.level)
    assert [each.task_id for each in claimed] == [task.task_id for task in expected]
    again = await store.run(store.ops.submit(tasks))
    assert [each.task_id for each in again] == [task.task_id for task in tasks]
    assert await store.census() == {
        State.EXECUTING: later.count(False),
        State.SCHEDULED: later.count(True),
    }


async def test_a_large_batch_with_keys_and_parents_is_stored(store: World) -> None:
    first = large_batch(20)
    parents = [task.task_id for task in first]
    rest = [
        new_task("keyed", LARGE, idempotency_key="k"),
        *(new_task("child", LARGE, depends_on=parents[n : n + 2]) for n in range(5)),
        *(new_task("single", {**LARGE, "n": n}, unique=True) for n in range(5)),
    ]
    accepted = await store.run(store.ops.submit([*first, *rest]))
    waiting = {each.task_id for each in accepted if each.state is State.SCHEDULED}
    assert {task.task_id for task in rest if task.depends_on} <= waiting
    again = [new_task("keyed", LARGE, idempotency_key="k"), *large_batch(10)]
    answers = await store.run(store.ops.submit(again))
    assert answers[0].task_id == rest[0].task_id
    assert sum((await store.census()).values()) == len(first) + len(rest) + 10


async def test_nothing_is_stored_of_a_large_batch_that_is_refused(store: World) -> None:
    (taken,) = await store.submit_all([new_task("taken", {"n": 1}, task_id=new_id())])
    before = await store.leftovers()
    batch = [*large_batch(), new_task("taken", {"n": 2}, task_id=taken)]
    with pytest.raises(TaskIdConflict):
        await store.run(store.ops.submit(batch))
    stored = await store.run(store.ops.get([task.task_id for task in batch]))
    assert [task.task_id for task in stored if task is not None] == [taken]
    assert await store.census() == {State.QUEUED: 1}
    assert (await store.leftovers()).keys() == before.keys()


async def test_large_results_are_stored_together(store: World) -> None:
    worker = await store.worker()
    count = 30
    ids = await store.submit_all([new_task("t", max_retries=0) for _ in range(count)])
    claimed = await store.claim(worker, count)
    results = {each.task_id: b'{"r":"%d%s"}' % (n, b"r" * 90_000) for n, each in enumerate(claimed)}
    settlements = [
        settlement(each, Completed(results[each.task_id]))
        if n % 3
        else settlement(each, Failed(TaskError("m" * 9_000, traceback="t" * 49_000)))
        for n, each in enumerate(claimed)
    ]
    # One is reported twice, and one by a worker that does not hold it.
    settlements.append(settlements[1])
    settlements.insert(7, replace(settlements[2], worker_id="other"))
    verdicts = verdicts_of(await store.run(store.ops.settle(settlements)))
    assert verdicts[7] is Verdict.STALE
    assert verdicts[:7] + verdicts[8:] == [Verdict.APPLIED] * (count + 1)
    stored = {task_id: await store.task(task_id) for task_id in ids}
    for n, each in enumerate(claimed):
        task = stored[each.task_id]
        if n % 3:
            assert (task.state, task.result) == (State.COMPLETED, results[each.task_id])
        else:
            assert task.state is State.DEAD_LETTER
            assert task.error is not None
            assert (task.error.message, len(task.error.traceback or "")) == ("m" * 9_000, 49_000)


async def a_few(store: World) -> list[str]:
    """Tasks that wait, run, have failed once, and have ended well and badly."""
    worker = await store.worker()
    await store.submit_all([new_task("t", {"n": 1}, tags={"a": "b"}, idempotency_key="k")])
    await store.settle(await store.claim_one(worker), Completed(b'{"answer": 42}'))
    dead = new_task("t", {"n": 2}, max_retries=0)
    await store.submit_all([dead])
    await store.settle(
        await store.claim_one(worker), Failed(TaskError("broken", "E", traceback="t"))
    )
    await store.submit_all([new_task("t", {"n": 3})])
    await store.settle(await store.claim_one(worker), Failed(TaskError("flaky")))
    await store.submit_all([new_task("t", {"n": 4})])
    held = await store.claim_one(worker)
    await store.run(store.ops.progress(worker, [Report(held.task_id, held.attempt, 50.0, "half")]))
    await store.submit_all([new_task("t", {"n": 5})])
    return (await store.run(store.ops.find(EVERYTHING, 100))).task_ids


def head_of(task: Task) -> Task:
    """A task without what can be large."""
    kept = tuple(run for run in task.attempts if run.outcome == "completed")
    return replace(task, payload=b"", result=None, attempts=kept)


async def test_heads_are_tasks_without_what_can_be_large(store: World) -> None:
    ids = await a_few(store)
    asked = [ids[2], new_id(), *ids]
    whole = await store.run(store.ops.get(asked))
    heads = await store.run(store.ops.heads(asked))
    assert [None if head is None else head.task_id for head in heads] == [
        None if task is None else task.task_id for task in whole
    ]
    for head, task in zip(heads, whole, strict=True):
        if head is not None and task is not None:
            assert head_of(head) == head
            assert head == head_of(task)
    assert {head.state for head in heads if head is not None} == {
        State.COMPLETED,
        State.DEAD_LETTER,
        State.RETRYING,
        State.EXECUTING,
        State.QUEUED,
    }
    assert await store.run(store.ops.heads([])) == []


async def test_heads_are_read_within_bounds(store: World) -> None:
    many = [new_id() for _ in range(limits.SUBMIT_BATCH)]
    assert await store.run(store.ops.heads(many)) == [None] * limits.SUBMIT_BATCH
    with pytest.raises(BatchTooLarge):
        await store.run(store.ops.heads([*many, new_id()]))


async def test_a_page_of_large_tasks_ends_early(store: World) -> None:
    submitted = [new_task("t", LARGE) for _ in range(52)]
    for start in range(0, 52, 13):
        await store.submit_all(submitted[start : start + 13])
    fit = limits.PAGE_BYTES // 251_014
    found: list[str] = []
    cursor: str | None = None
    sizes = []
    while True:
        page = await store.run(store.ops.page(EVERYTHING, 1_000, cursor))
        found += [task.task_id for task in page.tasks]
        sizes.append(len(page.tasks))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sizes == [fit, 52 - fit]
    assert found == sorted((task.task_id for task in submitted), reverse=True)


async def test_the_analysis_has_all_dead_letters(store: World) -> None:
    worker = await store.worker()
    await store.submit_all([new_task("t", LARGE, max_retries=0) for _ in range(40)])
    for claimed in [await store.claim_one(worker) for _ in range(40)]:
        await store.settle(claimed, Failed(TaskError(f"no user {claimed.task_id}", "E")))
    analysis = await store.run(store.ops.dlq_analysis())
    (group,) = analysis.groups
    assert (group.count, group.shape, analysis.complete) == (40, "no user <id>", True)
    dead = Filter(states=frozenset({State.DEAD_LETTER}))
    assert group.example == (await store.run(store.ops.find(dead, 1))).task_ids[0]
