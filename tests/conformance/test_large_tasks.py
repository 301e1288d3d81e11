"""Reading tasks that are large: their heads, and pages that end early."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.core.ids import new_id
from fairlane.core.model import Report, Task, TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

LARGE = {"data": "x" * 250_000}


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
