"""Whoever submits, settles or cancels a workflow dies between any two calls of the store."""

from __future__ import annotations

from itertools import count

import pytest

from fairlane.core.ids import new_run, numbered
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.states import State
from fairlane.core.workflows import WorkflowState
from tests.conformance.test_schedule_faults import dies
from tests.conformance.test_workflow_edges import SHAPES, below, finish
from tests.conformance.test_workflows import Edges, members, states
from tests.fixtures.stores import World, settlement

pytestmark = pytest.mark.local

EDGES: list[Edges] = list(SHAPES.values())
ENDS: dict[str, Outcome] = {
    "completed": Completed(b"1"),
    "failed": Failed(TaskError("no", retriable=False)),
}


@pytest.mark.parametrize("edges", EDGES, ids=list(SHAPES))
async def test_who_submits_dies(store: World, edges: Edges) -> None:
    """All is stored, or nothing, and submitting it again makes it whole."""
    worker = await store.worker(lease=80_000)
    parent = await store.submit("earlier")  # outside of it, and still to run
    submitted: list[str] = []
    for calls in count():
        workflow_id = new_run(len(edges))
        submitted.append(workflow_id)
        tasks = members(workflow_id, edges, depends_on=[parent])
        dead = await dies(store, store.ops.submit(tasks), calls)
        stored = await store.run(store.ops.workflow(workflow_id))
        assert stored is None or stored.complete
        await store.submit_all(tasks)
        if not dead:
            break
    await finish(store, worker)
    for each in submitted:
        stored = await store.run(store.ops.workflow(each))
        assert stored is not None
        assert stored.state is WorkflowState.COMPLETED
    assert set(await store.census()) == {State.COMPLETED}
    assert calls >= 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("edges", EDGES, ids=list(SHAPES))
async def test_who_settles_dies(store: World, edges: Edges, end: str) -> None:
    """The end counts with what follows from it, or not at all. The same report again is right."""
    worker = await store.worker(lease=80_000)
    for calls in count():
        workflow_id = new_run(len(edges))
        await store.submit_all(members(workflow_id, edges))
        task = await store.claim_one(worker)
        assert task.task_id == numbered(workflow_id, 1)
        report = settlement(task, ENDS[end])
        dead = await dies(store, store.ops.settle([report]), calls)
        (settled,) = await store.run(store.ops.settle([report]))
        assert settled.verdict == "applied"
        await finish(store, worker)
        state, nodes = await states(store, workflow_id)
        lower = below(edges, 1) if end == "failed" else set()
        assert {name for name, each in nodes.items() if each is State.CANCELLED} == {
            f"n{number}" for number in lower
        }
        assert state == end
        if not dead:
            break
    assert calls >= 1


@pytest.mark.parametrize("edges", EDGES, ids=list(SHAPES))
async def test_who_cancels_dies(store: World, edges: Edges) -> None:
    """Nothing runs of what was cancelled, and to cancel it again cancels the rest."""
    worker = await store.worker(lease=80_000)
    for calls in count():
        workflow_id = new_run(len(edges))
        await store.submit_all(members(workflow_id, edges))
        dead = await dies(store, store.ops.cancel_workflow(workflow_id), calls)
        await store.run(store.ops.cancel_workflow(workflow_id))
        assert await store.claim(worker) == []
        state, nodes = await states(store, workflow_id)
        assert (state, set(nodes.values())) == ("cancelled", {State.CANCELLED})
        if not dead:
            break
    assert calls >= 1
