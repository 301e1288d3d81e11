"""Tasks that are stored together as a workflow: reading it as one, and cancelling it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, InvalidTaskId, UnknownDependency
from fairlane.core.ids import new_id, new_run, numbered
from fairlane.core.inputs import Input
from fairlane.core.membership import placed
from fairlane.core.model import Membership, NewTask, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.workflows import Workflow, WorkflowState
from tests.fixtures.stores import World

Edges = Sequence[Sequence[int]]
"""The parents of each task, by their numbers from 1 on."""
CHAIN: Edges = [[], [1], [2]]


def members(workflow_id: str, edges: Edges, **options: Any) -> list[NewTask]:
    """The tasks of a workflow. `tolerant`: those that go on whatever becomes of their parents."""
    tolerant = options.pop("tolerant", ())
    return [
        placed(
            new_task(
                "work",
                on_parent_failure="continue" if number in tolerant else "cancel",
                **options,
            ),
            workflow_id,
            number,
            Membership(f"n{number}", len(edges), "order", answers=number == len(edges)),
            [numbered(workflow_id, parent) for parent in parents],
            {"all": Input(tuple(range(len(parents))), many=True)} if parents else {},
        )
        for number, parents in enumerate(edges, 1)
    ]


async def submitted(store: World, edges: Edges, **options: Any) -> str:
    workflow_id = new_run(len(edges))
    await store.submit_all(members(workflow_id, edges, **options))
    return workflow_id


async def found(store: World, workflow_id: str) -> Workflow:
    workflow = await store.run(store.ops.workflow(workflow_id))
    assert workflow is not None
    return workflow


async def states(store: World, workflow_id: str) -> tuple[WorkflowState, dict[str, State]]:
    workflow = await found(store, workflow_id)
    return workflow.state, {node.name: node.state for node in workflow.nodes}


async def run(store: World, worker: str, outcome: Outcome | None = None) -> str:
    """Run the next task; return its id."""
    return (await store.claim_and_settle(worker, outcome)).task_id


def failure() -> Failed:
    return Failed(TaskError.of("sold out", "SOLD_OUT"))


async def test_a_workflow_is_read_as_one(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1], [1, 2]])
    first, second, third = (numbered(workflow_id, number) for number in (1, 2, 3))
    workflow = await found(store, workflow_id)
    assert (workflow.name, workflow.state, workflow.complete) == ("order", "running", True)
    assert workflow.ended_at is None
    assert [node.task_id for node in workflow.nodes] == [first, second, third]
    assert [node.parents for node in workflow.nodes] == [(), (first,), (first, second)]
    assert [node.answers for node in workflow.nodes] == [False, False, True]
    assert [node.state for node in workflow.nodes] == ["queued", "scheduled", "scheduled"]
    assert [await run(store, worker, Completed(b"1")) for _ in range(3)] == [first, second, third]
    workflow = await found(store, workflow_id)
    assert workflow.state is WorkflowState.COMPLETED
    assert workflow.ended_at == workflow.nodes[2].ended_at is not None
    task = await store.task(third)
    assert task.workflow_id == workflow_id
    assert task.membership == Membership("n3", 3, "order", answers=True)


async def test_there_is_none(store: World) -> None:
    alone = await store.submit()
    for workflow_id in (new_id(), alone, numbered(alone, -1)):
        assert await store.run(store.ops.workflow(workflow_id)) is None
        assert await store.run(store.ops.cancel_workflow(workflow_id)) == []
    assert await store.state(alone) is State.QUEUED
    for op in (store.ops.workflow, store.ops.cancel_workflow):
        with pytest.raises(InvalidTaskId):
            await store.run(op("nothing"))


async def test_all_tasks_are_stored_or_none(store: World) -> None:
    workflow_id = new_run(3)
    tasks = members(workflow_id, CHAIN, depends_on=[new_id()])
    with pytest.raises(UnknownDependency):
        await store.submit_all(tasks)
    assert await store.run(store.ops.workflow(workflow_id)) is None
    assert await store.census() == {}


async def test_the_same_submission_again_is_the_same_workflow(store: World) -> None:
    tasks = members(new_run(3), CHAIN)
    assert await store.submit_all(tasks) == await store.submit_all(tasks)
    assert await store.census() == {State.QUEUED: 1, State.SCHEDULED: 2}


async def test_a_task_that_fails_takes_the_rest_with_it(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [], [1, 2], [3]], max_retries=0)
    first = await run(store, worker, failure())
    assert (await found(store, workflow_id)).state is WorkflowState.RUNNING
    await run(store, worker)
    state, nodes = await states(store, workflow_id)
    assert state is WorkflowState.FAILED
    assert list(nodes.values())[1:] == ["completed", "cancelled", "cancelled"]
    workflow = await found(store, workflow_id)
    assert workflow.culprit is not None
    assert (workflow.culprit.task_id, workflow.culprit.error) == (first, "sold out")
    assert [node.doomed for node in workflow.nodes] == [False, False, True, True]


async def test_a_task_that_retries_has_not_failed(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1]], max_retries=1)
    await run(store, worker, failure())
    state, nodes = await states(store, workflow_id)
    assert (state, nodes) == ("running", {"n1": State.RETRYING, "n2": State.SCHEDULED})
    await store.advance(3_600)
    await run(store, worker)
    await run(store, worker)
    assert (await found(store, workflow_id)).state is WorkflowState.COMPLETED


async def test_a_failure_that_others_go_on_from(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1]], tolerant=[2], max_retries=0)
    await run(store, worker, failure())
    await run(store, worker)
    assert (await found(store, workflow_id)).state is WorkflowState.COMPLETED


async def test_one_that_somebody_cancels(store: World) -> None:
    workflow_id = await submitted(store, CHAIN)
    await store.run(store.ops.cancel([numbered(workflow_id, 1)]))
    state, nodes = await states(store, workflow_id)
    assert (state, set(nodes.values())) == ("cancelled", {State.CANCELLED})


async def test_one_that_expires(store: World) -> None:
    workflow_id = new_run(2)
    _, second = members(workflow_id, [[], [1]])
    created = (await store.task(await store.submit("other", delay_seconds=3_600))).created_at
    short = new_task("work", expires_at=created + timedelta(minutes=1))
    first = placed(short, workflow_id, 1, Membership("n1", 2, "order"), [], {})
    await store.submit_all([first, second])
    await store.advance(120)
    await store.ask(await store.worker())
    assert (await found(store, workflow_id)).state is WorkflowState.FAILED


async def test_deleted_tasks_leave_gaps(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN)
    for _ in range(3):
        await run(store, worker)
    await store.run(store.ops.delete([numbered(workflow_id, 1), numbered(workflow_id, 3)]))
    workflow = await found(store, workflow_id)
    assert [node.name for node in workflow.nodes] == ["n2"]
    assert (workflow.complete, workflow.state) == (False, "completed")
    await store.run(store.ops.delete([numbered(workflow_id, 2)]))
    assert await store.run(store.ops.workflow(workflow_id)) is None


async def test_cancelling_a_workflow(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [], [1, 2], [3]])
    await run(store, worker)
    running = await store.claim_one(worker)
    answers = await store.run(store.ops.cancel_workflow(workflow_id))
    assert [answer.task_id for answer in answers] == [
        *(numbered(workflow_id, number) for number in (4, 3)),
        running.task_id,
    ]
    assert all(answer.applied for answer in answers)
    state, nodes = await states(store, workflow_id)
    assert state is WorkflowState.CANCELLED
    assert sorted(nodes.values()) == ["cancelled", "cancelled", "cancelled", "completed"]
    assert not any(node.doomed for node in (await found(store, workflow_id)).nodes)
    assert await store.run(store.ops.cancel_workflow(workflow_id)) == []


async def test_as_many_tasks_as_there_may_be(store: World) -> None:
    """Each of 998 is a parent of the last one."""
    count = limits.WORKFLOW_NODES
    workflow_id = await submitted(store, [*([[]] * (count - 1)), list(range(1, count))])
    workflow = await found(store, workflow_id)
    assert (len(workflow.nodes), workflow.complete) == (count, True)
    assert len(workflow.nodes[-1].parents) == count - 1
    worker = await store.worker(capacity=500)
    ended = 0
    while ended < count - 1:
        tasks = await store.claim(worker, 200)
        for task in tasks:
            await store.settle(task)
        ended += len(tasks)
    last = await store.claim_one(worker)
    assert last.task_id == numbered(workflow_id, count)
    await store.settle(last)
    assert (await found(store, workflow_id)).state is WorkflowState.COMPLETED


async def test_edges_are_bounded(store: World) -> None:
    workflow_id = new_run(600)
    tasks = members(workflow_id, [list(range(1, number)) for number in range(1, 601)])
    with pytest.raises(BatchTooLarge, match="at most 100,000 parents together"):
        await store.submit_all(tasks)
    assert await store.run(store.ops.workflow(workflow_id)) is None


async def test_a_large_one_is_cancelled_whole(store: World) -> None:
    workflow_id = await submitted(store, [[] for _ in range(600)])
    answers = await store.run(store.ops.cancel_workflow(workflow_id))
    assert sum(answer.applied for answer in answers) == 600
    assert (await found(store, workflow_id)).state is WorkflowState.CANCELLED
