"""What becomes of a workflow when a task ends badly, and the task that runs at the end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import new_run, numbered
from fairlane.core.inputs import Input
from fairlane.core.membership import placed
from fairlane.core.merging import NodeOutcome, ParentResult, merged, wanted
from fairlane.core.model import Membership, NewTask, OnFailure, Task, Verdict
from fairlane.core.outcomes import Completed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.workflows import Workflow, WorkflowState
from tests.conformance.test_workflow_records import ends, one, watched
from tests.conformance.test_workflows import Edges, failure, found
from tests.fixtures.steps import Killed, stopped
from tests.fixtures.stores import World, settlement


def members(
    workflow_id: str,
    edges: Edges,
    *,
    on_failure: OnFailure = OnFailure.CANCEL,
    on_exit: bool = True,
    tolerant: Sequence[int] = (),
    **options: Any,
) -> list[NewTask]:
    """The tasks of a workflow, and one that runs at the end."""
    count = len(edges) + on_exit
    numbers = list(range(1, len(edges) + 1))
    parents = [*edges, *([numbers] if on_exit else [])]
    tasks = []
    for number, each in enumerate(parents, 1):
        last = on_exit and number == count
        inputs = {"outcomes": Input(tuple(range(len(each))), many=True, outcomes=True)}
        policy = "continue" if last or number in tolerant else "cancel"
        tasks.append(
            placed(
                new_task("last" if last else "work", on_parent_failure=policy, **options),
                workflow_id,
                number,
                Membership(f"n{number}", count, "order", on_failure=on_failure, on_exit=last),
                [numbered(workflow_id, parent) for parent in each],
                inputs if last else {},
            )
        )
    return tasks


async def submit(store: World, edges: Edges, **options: Any) -> str:
    options = {"max_retries": 0, **options}
    tasks = members(new_run(len(edges) + 1), edges, **options)
    await store.run(store.ops.submit_workflow(tasks))
    assert tasks[0].spec.workflow_id is not None
    return tasks[0].spec.workflow_id


def states(workflow: Workflow) -> dict[str, State]:
    return {node.name: node.state for node in workflow.nodes}


async def outcomes(store: World, worker: str) -> list[NodeOutcome]:
    """Run the last task; return what it gets."""
    claimed = await store.claim_one(worker)
    assert claimed.type == "last"
    task = await store.task(claimed.task_id)
    results = {}
    if "outcomes" not in claimed.payload.decode():  # a server has added them
        parents: list[Task | None] = await store.run(store.ops.get(wanted(claimed.spec)))
        results = {each.task_id: ParentResult.of(each) for each in parents if each is not None}
        payload = merged(claimed.payload, claimed.spec, results)
    else:
        payload = claimed.payload
    await store.settle(claimed, Completed(b"1"))
    assert await store.state(task.task_id) is State.COMPLETED
    return msgspec.json.decode(payload, type=dict[str, list[NodeOutcome]])["outcomes"]


# -- a failure cancels the rest --------------------------------------------------------------------


async def test_a_failure_cancels_the_rest(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], [], [2], []], on_exit=False)
    first, second = await store.claim(worker, 2)
    assert await store.settle(first, failure()) is Verdict.APPLIED
    workflow = await found(store, workflow_id)
    assert workflow.state is WorkflowState.FAILED
    assert states(workflow) == {
        "n1": State.DEAD_LETTER,
        **dict.fromkeys(("n2", "n3", "n4"), State.CANCELLED),
    }
    assert await store.settle(second) is Verdict.STALE
    assert workflow.culprit is not None
    assert workflow.culprit.name == "n1"


async def test_by_default_the_others_go_on(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], []], on_exit=False, on_failure=OnFailure.CONTINUE)
    await store.claim_and_settle(worker, failure())
    assert (await found(store, workflow_id)).state is WorkflowState.RUNNING
    await store.claim_and_settle(worker)
    assert (await found(store, workflow_id)).state is WorkflowState.FAILED


async def test_a_failure_that_all_go_on_from_cancels_nothing(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], [1], []], tolerant=[2], on_exit=False)
    await store.claim_and_settle(worker, failure())
    assert (await found(store, workflow_id)).state is WorkflowState.RUNNING
    for _ in range(2):
        await store.claim_and_settle(worker)
    assert (await found(store, workflow_id)).state is WorkflowState.COMPLETED


async def test_one_that_is_retried_cancels_nothing(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], []], on_exit=False, max_retries=1)
    await store.claim_and_settle(worker, failure())
    assert states(await found(store, workflow_id))["n2"] is State.QUEUED


@pytest.mark.local
@pytest.mark.parametrize("end", ["cancelled", "expired", "timeout"])
async def test_other_ends_cancel_the_rest_soon(store: World, end: str) -> None:
    worker = await store.worker(lease=86_400.0)
    created = (await store.task(await store.submit("other", delay_seconds=36_000))).created_at
    ends: dict[str, dict[str, Any]] = {
        "expired": {"expires_at": created + timedelta(minutes=1)},
        "timeout": {"timeout_seconds": 60.0},
    }
    tasks = members(new_run(3), [[], []], on_exit=False, max_retries=0)
    membership, workflow_id = tasks[0].spec.membership, tasks[0].spec.workflow_id
    assert membership is not None
    assert workflow_id is not None
    first = new_task("work", max_retries=0, **ends.get(end, {}))
    tasks[0] = placed(first, workflow_id, 1, membership, [], {})
    await store.run(store.ops.submit_workflow(tasks))
    if end == "cancelled":
        await store.run(store.ops.cancel([tasks[0].task_id]))
    elif end == "timeout":
        await store.start(await store.claim_one(worker))
    await store.advance(120)
    await store.run(store.ops.move_due())
    await store.reap()
    await watched(store)
    workflow = await found(store, workflow_id)
    assert workflow.state is not WorkflowState.RUNNING
    assert states(workflow)["n2"] is State.CANCELLED


@pytest.mark.local
async def test_who_settles_dies_before_the_rest_is_cancelled(store: World) -> None:
    worker = await store.worker()
    for calls in range(100):
        workflow_id = await submit(store, [[], []], on_exit=False)
        task, _ = await store.claim(worker, 2)
        op = store.ops.settle([settlement(task, failure())])
        try:
            await store.run(stopped(op, calls))
            dead = False
        except Killed:
            dead = True
            again = [settlement(task, failure())]
            await store.run(store.ops.settle(again))
        await store.advance(5)
        await watched(store)
        workflow = await found(store, workflow_id)
        assert states(workflow) == {"n1": State.DEAD_LETTER, "n2": State.CANCELLED}
        if not dead:
            break
    assert calls >= 2
    assert await ends(store) == {WorkflowState.FAILED: calls + 1}


# -- the task that runs at the end -----------------------------------------------------------------


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "stopped"])
async def test_it_runs_once_with_all_outcomes(store: World, end: str) -> None:
    worker = await store.worker()
    policy = OnFailure.CANCEL if end == "stopped" else OnFailure.CONTINUE
    workflow_id = await submit(store, [[], [1], []], on_failure=policy)
    if end == "completed":
        for number in range(3):
            await store.claim_and_settle(worker, Completed(b'{"n":%d}' % number))
    elif end == "failed":
        await store.claim_and_settle(worker, failure())
        await store.claim_and_settle(worker, Completed(b"3"))
    elif end == "stopped":
        await store.claim_and_settle(worker, failure())
    else:
        await store.run(store.ops.cancel_workflow(workflow_id))
    before = await found(store, workflow_id)
    assert before.state is WorkflowState.RUNNING
    assert [node.name for node in before.nodes if node.live] == ["n4"]
    got = await outcomes(store, worker)
    assert [each.node for each in got] == ["n1", "n2", "n3"]
    assert [each.task_id for each in got] == [numbered(workflow_id, n) for n in (1, 2, 3)]
    reached = [each.state for each in got]
    cancelled = State.CANCELLED
    if end == "completed":
        assert sorted(each.result["n"] for each in got) == [0, 1, 2]
        assert all(each.completed and each.error is None for each in got)
    elif end == "cancelled":
        assert reached == [cancelled] * 3
    else:
        rest = State.COMPLETED if end == "failed" else cancelled
        assert reached == [State.DEAD_LETTER, cancelled, rest]
        assert (got[0].error, got[0].code, got[0].result) == ("sold out", "SOLD_OUT", None)
    assert await store.claim(worker) == []
    expected = {"stopped": "failed"}.get(end, end)
    assert (await found(store, workflow_id)).state == expected


async def test_it_forgives_nothing(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[]], on_failure=OnFailure.CONTINUE)
    await store.claim_and_settle(worker, failure())
    await store.claim_and_settle(worker)
    workflow = await found(store, workflow_id)
    assert (workflow.state, workflow.culprit) == ("failed", workflow.nodes[0])


async def test_if_it_fails_itself_the_workflow_has_failed(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[]])
    await store.claim_and_settle(worker)
    await store.claim_and_settle(worker, failure())
    workflow = await found(store, workflow_id)
    assert (workflow.state, workflow.culprit) == ("failed", workflow.nodes[-1])


async def test_it_can_be_cancelled_by_itself(store: World) -> None:
    workflow_id = await submit(store, [[]])
    last = numbered(workflow_id, 2)
    await store.run(store.ops.cancel_workflow(workflow_id))
    assert await store.run(store.ops.cancel_workflow(workflow_id)) == []
    await store.run(store.ops.cancel([last]))
    assert (await found(store, workflow_id)).state is WorkflowState.CANCELLED


async def test_a_large_result_is_left_out(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], []])
    await store.claim_and_settle(worker, Completed(b'"%b"' % (b"x" * 70_000)))
    await store.claim_and_settle(worker, Completed(b"7"))
    got = await outcomes(store, worker)
    assert sorted((each.omitted, each.result) for each in got if not each.omitted) == [(False, 7)]
    assert [each.result for each in got if each.omitted] == [None]
    assert (await found(store, workflow_id)).state is WorkflowState.COMPLETED


async def test_what_was_deleted_is_said(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], []])
    await store.claim_and_settle(worker)
    await store.run(store.ops.delete([numbered(workflow_id, 1)]))
    await store.claim_and_settle(worker)
    first, second = await outcomes(store, worker)
    assert (first.state, first.error, first.completed) == (None, "It was deleted.", False)
    assert second.completed


@pytest.mark.local
async def test_its_end_is_the_workflows(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[]])
    await store.claim_and_settle(worker)
    await store.advance(30)
    assert await watched(store) == {}
    await store.claim_and_settle(worker)
    await store.advance(30)
    assert await watched(store) == {workflow_id: WorkflowState.COMPLETED}
    assert (await one(store)).counts == {State.COMPLETED: 2}


@pytest.mark.local
async def test_a_round_that_is_overtaken_begins_again(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds note the same end: one of them finds nothing left to do."""
    worker = await store.worker()
    workflow_id = await submit(store, [[]], on_exit=False)
    await store.claim_and_settle(worker)
    await store.advance(30)
    operations = type(store.ops)
    original = operations.settings
    rounds: list[Any] = []

    @writes
    def settings(self: Any) -> Flow[Any]:
        if not rounds:
            rounds.append(None)
            rounds.append((yield from self.watch_workflows().flow()))
        return (yield from original(self).flow())

    monkeypatch.setattr(operations, "settings", settings)
    outer = await store.run(store.ops.watch_workflows())
    monkeypatch.undo()
    noticed = [*rounds[1].ended, *outer.ended]
    assert noticed == [workflow_id]
    assert await ends(store) == {WorkflowState.COMPLETED: 1}
