"""What becomes of a workflow, of every shape, when something happens to one of its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from fairlane.client.parent_results import ParentResults
from fairlane.core import limits
from fairlane.core.errors import InputMissing, InputsTooLarge
from fairlane.core.ids import new_ids, new_run, numbered
from fairlane.core.inputs import Input
from fairlane.core.membership import placed
from fairlane.core.merging import merged
from fairlane.core.model import Claimed, Membership, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.workflows import WorkflowState
from tests.conformance.test_workflows import Edges, found, members, states
from tests.fixtures.stores import World

SHAPES: dict[str, Edges] = {
    "chain": [[], [1], [2]],
    "gather": [[], [], [], [1, 2, 3]],
    "nested gather": [[], [], [1, 2], [], [3, 4], [5]],
    "graph": [[], [1], [1], [2, 3], [], [5, 1]],
}
"""In all of them something happens to the first task."""
FATAL = Failed(TaskError("no", retriable=False))
MEGABYTE = b'"%b"' % (b"x" * (limits.RESULT_BYTES - 2))


def below(edges: Edges, number: int) -> set[int]:
    """The numbers of all tasks that depend on a task, however far from it."""
    lower = {number}
    for each, parents in enumerate(edges, 1):
        if lower.intersection(parents):
            lower.add(each)
    return lower - {number}


async def finish(store: World, worker: str) -> None:
    """Run what there is, until there is no more."""
    while claimed := await store.claim(worker):
        for task in claimed:
            await store.settle(task, Completed(b"1"))


async def happens(store: World, end: str, victim: str) -> State:
    """Let it happen to the task, which is queued; return the state in which it is then."""
    worker = await store.worker(lease=10)
    match end:
        case "cancelled while it waits":
            await store.run(store.ops.cancel([victim]))
            return State.CANCELLED
        case "expired":
            await store.advance(120)
            await store.behind.run(store.behind.ops.move_due())
            return State.FAILED
        case _:
            task = await store.claim_one(worker)
            assert task.task_id == victim
            await store.start(task)
            return await ends(store, end, task)


async def ends(store: World, end: str, task: Claimed) -> State:
    """The same, of one that runs."""
    outcomes: dict[str, tuple[Outcome, State]] = {
        "failed": (FATAL, State.FAILED),
        "dead": (Failed(TaskError("x")), State.DEAD_LETTER),
        "retried": (Failed(TaskError("x"), after=0), State.RETRYING),
    }
    match end:
        case "cancelled while it runs":
            await store.run(store.ops.cancel([task.task_id]))
            return State.CANCELLED
        case "lost with its worker":
            await store.advance(11)
            await store.reap()
            return State.QUEUED
        case "lost for good":
            await store.advance(11)
            await store.reap()
            return State.DEAD_LETTER
        case _:
            outcome, state = outcomes[end]
            await store.settle(task, outcome)
            return state


ENDS = (
    "failed",
    "dead",
    "retried",
    "cancelled while it waits",
    "cancelled while it runs",
    "expired",
    "lost with its worker",
    "lost for good",
)
GO_ON = {"retried", "lost with its worker"}
"""Those after which the task completes in the end."""


@pytest.mark.parametrize("tolerant", [False, True], ids=["strict", "tolerant"])
@pytest.mark.parametrize("end", ENDS)
async def test_a_task_of_a_workflow_is(store: World, end: str, tolerant: bool) -> None:
    for edges in SHAPES.values():
        workflow_id = new_run(len(edges))
        tasks = members(
            workflow_id,
            edges,
            max_retries=int(end in GO_ON),
            tolerant=range(2, len(edges) + 1) if tolerant else (),
        )
        if end == "expired":
            earlier = await store.submit("other", required_capabilities=["none"])
            created = (await store.task(earlier)).created_at
            short = new_task("work", expires_at=created + timedelta(minutes=1))
            tasks[0] = placed(short, workflow_id, 1, Membership("n1", len(edges), "order"), [], {})
        await store.submit_all(tasks)
        state = await happens(store, end, numbered(workflow_id, 1))
        assert await store.state(numbered(workflow_id, 1)) is state
        await store.advance(1)
        await finish(store, await store.worker(lease=80_000))
        _, nodes = await states(store, workflow_id)
        first = State.COMPLETED if end in GO_ON else state
        lower = set() if tolerant or first is State.COMPLETED else below(edges, 1)
        assert [nodes[f"n{number}"] for number in range(1, len(edges) + 1)] == [
            first,
            *(
                State.CANCELLED if number in lower else State.COMPLETED
                for number in range(2, len(edges) + 1)
            ),
        ]
        workflow = await found(store, workflow_id)
        assert workflow.state is not WorkflowState.RUNNING
        assert {node.name for node in workflow.nodes if node.doomed} == {f"n{n}" for n in lower}


@pytest.mark.local  # a server adds the results: tests/server
async def test_a_task_that_is_deleted_before_others_take_its_result(store: World) -> None:
    """It is not waited for any more. Those who take its result learn that it is gone."""
    for edges in SHAPES.values():
        worker = await store.worker()
        workflow_id = new_run(len(edges))
        await store.submit_all(members(workflow_id, edges))
        first = numbered(workflow_id, 1)
        await store.claim_and_settle(worker, Completed(b"1"))
        (deleted,) = await store.run(store.ops.delete([first]))
        assert deleted.applied
        taken: list[str] = []
        while claimed := await store.claim(worker):
            for task in claimed:
                if first in task.spec.depends_on:
                    with pytest.raises(InputMissing, match="which was deleted"):
                        await taken_by(store, task)
                    taken.append(task.task_id)
                await store.settle(task, Completed(b"1"))
        assert taken
        assert not (await found(store, workflow_id)).complete


async def taken_by(store: World, task: Claimed) -> dict[str, object]:
    """The parameters with which a task would run."""
    results = await ParentResults(store.backend).of(task.spec)
    found: dict[str, object] = msgspec.json.decode(merged(task.payload, task.spec, results))
    return found


async def test_a_gather_of_nothing_runs_at_once(store: World) -> None:
    worker = await store.worker()
    workflow_id = new_run(1)
    none = Input((), many=True)
    task = placed(new_task("total"), workflow_id, 1, Membership("n1", 1), [], {"all": none})
    await store.submit_all([task])
    assert await taken_by(store, await store.claim_one(worker)) == {"all": []}


@pytest.mark.local  # a server adds the results: tests/server
async def test_a_parent_that_is_given_twice(store: World) -> None:
    worker = await store.worker()
    workflow_id = new_run(2)
    membership = [Membership(f"n{number}", 2) for number in (1, 2)]
    parent = numbered(workflow_id, 1)
    twice = {"both": Input((0, 0), many=True), "one": Input((0,))}
    await store.submit_all(
        [
            placed(new_task("work"), workflow_id, 1, membership[0], [], {}),
            placed(new_task("total"), workflow_id, 2, membership[1], [parent, parent], twice),
        ]
    )
    await store.claim_and_settle(worker, Completed(b"7"))
    child = await store.claim_one(worker)
    assert child.spec.depends_on == (parent,)
    assert await taken_by(store, child) == {"both": [7, 7], "one": 7}


async def of_a_megabyte_each(store: World, parents: int) -> Claimed:
    """A task that takes so many results of a megabyte, the largest there may be."""
    worker = await store.worker(lease=80_000)
    ids = new_ids(parents)
    await store.submit_all([new_task("work", task_id=each) for each in ids])
    inputs = {"all": Input(tuple(range(parents)), many=True)}
    await store.submit("total", depends_on=ids, inputs=inputs)
    while (task := await store.claim_one(worker)).type == "work":
        await store.settle(task, Completed(MEGABYTE))
    return task


@pytest.mark.local  # a server adds the results: tests/server
async def test_results_of_a_megabyte(store: World) -> None:
    task = await of_a_megabyte_each(store, 3)
    values = (await taken_by(store, task))["all"]
    assert isinstance(values, list)
    assert [len(each) for each in values] == [limits.RESULT_BYTES - 2] * 3


@pytest.mark.local  # a server adds the results: tests/server
async def test_more_results_than_a_task_may_take(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and what to do. (The limit is 64 of them; here it is lower, to be quick.)"""
    monkeypatch.setattr(limits, "INPUT_BYTES", 3 * limits.RESULT_BYTES - 1)
    task = await of_a_megabyte_each(store, 3)
    with pytest.raises(InputsTooLarge, match="gather them in steps"):
        await taken_by(store, task)


async def test_a_cancellation_beside_the_last_end(store: World) -> None:
    """Whichever comes first: the task that waited for it does not run."""
    (there,) = store.processes(1)
    worker = await store.worker(capacity=100)
    for number in range(10):
        workflow_id = new_run(3)
        await store.submit_all(members(workflow_id, [[], [], [1, 2]]))
        await store.claim_and_settle(worker)
        last = await store.claim_one(worker)
        settling = store.settle(last)
        cancelling = there.run(there.ops.cancel_workflow(workflow_id))
        both: Sequence[object] = (settling, cancelling)[:: 1 if number % 2 else -1]
        await asyncio.gather(*both)  # type: ignore[call-overload]
        assert await store.claim(worker) == []
        state, nodes = await states(store, workflow_id)
        assert state is WorkflowState.CANCELLED
        assert nodes["n3"] is State.CANCELLED
        assert nodes["n2"] in {State.CANCELLED, State.COMPLETED}
