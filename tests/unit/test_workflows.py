"""Workflows: which tasks are theirs, and what the states of these say of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.dependencies import OnParentFailure
from fairlane.core.errors import (
    InvalidDependencies,
    InvalidInputs,
    InvalidTaskId,
    InvalidWorkflow,
)
from fairlane.core.flow import Flow, Op, perform, reads, writes
from fairlane.core.ids import numbered
from fairlane.core.inputs import Input
from fairlane.core.machine import DOOM
from fairlane.core.membership import checked_name, ids_of, placed
from fairlane.core.model import Cancelled, Membership, OnFailure, Spec, Task, TaskError
from fairlane.core.states import State
from fairlane.core.submission import new_form, new_task
from fairlane.core.workflows import (
    Workflow,
    WorkflowNode,
    WorkflowState,
    cancel_workflow,
    state_of,
    workflow,
    workflow_of,
)
from tests.unit.make import NOON, stored, task_id

W, OTHER = task_id(1_000), task_id(5_000)
PLACE = Membership("load", 3)


class TestSubmission:
    def test_a_task_says_where_it_belongs(self) -> None:
        task = new_task("t", task_id=numbered(W, 3), workflow_id=W, membership=PLACE)
        assert (task.spec.workflow_id, task.spec.membership) == (W, PLACE)
        encoded = task.spec.encode()
        assert encoded == b'{"workflow_id":"%b","membership":{"node":"load","nodes":3}}' % (
            W.encode()
        )
        assert Spec.decode(encoded) == task.spec

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"workflow_id": W}, "has three things"),
            ({"membership": PLACE}, "has three things"),
            ({"workflow_id": W, "membership": PLACE}, "has three things"),
            ({"task_id": W, "workflow_id": W, "membership": PLACE}, "that follow its own"),
            ({"task_id": numbered(W, 4), "workflow_id": W, "membership": PLACE}, "The 3 tasks"),
            ({"task_id": numbered(W, -1), "workflow_id": W, "membership": PLACE}, "follow its own"),
            ({"nodes": 0}, "has 1 to 999 tasks. Got 0"),
            ({"nodes": 1_000}, "has 1 to 999 tasks. Got 1000"),
            ({"nodes": True}, "has 1 to 999 tasks"),
            ({"node": ""}, "The name of a workflow"),
            ({"node": "a\nb"}, "The name of a workflow"),
            ({"node": "n" * 256}, "The name of a workflow"),
            ({"name": ""}, "The name of a workflow"),
            ({"name": 5}, "The name of a workflow"),
        ],
    )
    def test_what_cannot_be_is_refused(self, given: dict[str, Any], says: str) -> None:
        options: dict[str, Any] = {"task_id": numbered(W, 1), "workflow_id": W}
        if given.keys() & {"nodes", "node", "name"}:
            options["membership"] = replace(PLACE, **given)
        else:
            options = given
        with pytest.raises(InvalidWorkflow, match=says):
            new_task("t", **options)

    @pytest.mark.parametrize("place", ["task_id", "workflow_id"])
    def test_ids_are_ids(self, place: str) -> None:
        options: dict[str, Any] = {"task_id": numbered(W, 1), "workflow_id": W, place: "x"}
        with pytest.raises(InvalidTaskId):
            new_task("t", membership=PLACE, **options)

    def test_names(self) -> None:
        assert checked_name("Ärger & Co.") == "Ärger & Co."


class TestPlacing:
    def test_a_call_becomes_a_task_of_a_workflow(self) -> None:
        call = new_form("t", depends_on=[OTHER], priority="high").filled(b'{"a":1}')
        parents = [numbered(W, 1), numbered(W, 2)]
        task = placed(call, W, 3, PLACE, parents, {"b": Input((1,))})
        assert task.task_id == numbered(W, 3)
        assert task.spec.depends_on == (*parents, OTHER)
        assert (task.level, task.payload, task.chosen) == (call.level, b'{"a":1}', False)
        assert task.spec.inputs == {"b": Input((1,))}

    @pytest.mark.parametrize(
        "options", [{"idempotency_key": "k"}, {"unique": True}, {"task_id": OTHER}]
    )
    def test_one_that_may_be_another_task_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidWorkflow, match="The task load cannot have an idempotency key"):
            placed(new_task("t", **options), W, 1, PLACE, [], {})

    def test_inputs_and_parents_are_checked(self) -> None:
        call = new_task("t", {"a": 1})
        with pytest.raises(InvalidInputs, match="in the payload and in the inputs"):
            placed(call, W, 3, PLACE, [numbered(W, 1)], {"a": Input((0,))})
        with pytest.raises(InvalidDependencies):
            placed(call, W, 3, PLACE, ids_of(W, 1, 1_000), {})


def member(number: int, state: State = State.COMPLETED, *parents: int, **changes: Any) -> Task:
    """A task of the workflow W."""
    of = changes.pop("of", 3)
    ended = None if state in {State.QUEUED, State.EXECUTING} else NOON + timedelta(seconds=number)
    return stored(
        task_id=numbered(W, number),
        state=state,
        workflow_id=W,
        membership=Membership(f"node {number}", of, "order", answers=number == of),
        depends_on=tuple(numbered(W, parent) for parent in parents),
        completed_at=ended,
        **changes,
    )


def doomed(number: int, *parents: int) -> Task:
    return member(number, State.CANCELLED, *parents, error=DOOM.error)


def tolerant(number: int, state: State, *parents: int) -> Task:
    return member(number, state, *parents, tolerant=True)


def failed(number: int, *parents: int) -> Task:
    return member(number, State.FAILED, *parents, error=TaskError("sold out"))


DONE, GONE, DEAD = State.COMPLETED, State.CANCELLED, State.DEAD_LETTER


class TestState:
    @pytest.mark.parametrize(
        ("tasks", "state"),
        [
            ([member(1), member(2), member(3)], "completed"),
            ([member(1), member(2, State.EXECUTING), member(3, GONE)], "running"),
            ([failed(1), member(2, State.RETRYING), doomed(3, 1)], "running"),
            ([member(1), failed(2, 1), doomed(3, 2)], "failed"),
            ([member(1), member(2, DEAD)], "failed"),
            ([failed(1), tolerant(2, DONE, 1)], "completed"),
            ([failed(1), tolerant(2, DONE, 1), doomed(3, 1)], "failed"),
            ([failed(1), tolerant(2, DONE, 1), member(3, DONE, 2)], "completed"),
            ([member(1, GONE), tolerant(2, DONE, 1)], "completed"),
            ([failed(1), tolerant(2, State.FAILED, 1)], "failed"),
            ([member(1, GONE), doomed(2, 1)], "cancelled"),
            ([member(1, GONE), doomed(2, 1), failed(3)], "failed"),
            ([doomed(2, 1)], "failed"),
        ],
    )
    def test_it_follows_from_those_of_its_tasks(self, tasks: list[Task], state: str) -> None:
        found = workflow_of(W, tasks)
        assert found is not None
        assert found.state == state
        assert (found.ended_at is None) == (state == "running")

    def test_what_is_said_of_it(self) -> None:
        tasks = [member(1), failed(2, 1), doomed(3, 2)]
        assert workflow_of(W, tasks) == Workflow(
            workflow_id=W,
            name="order",
            state=WorkflowState.FAILED,
            on_failure=OnFailure.CONTINUE,
            created_at=NOON,
            ended_at=NOON + timedelta(seconds=3),
            complete=True,
            nodes=(
                node(1, DONE),
                node(2, State.FAILED, 1, error="sold out"),
                node(3, GONE, 2, error="A task it depends on did not complete.", doomed=True),
            ),
        )

    def test_the_culprit_is_who_failed_first_and_not_because_of_another(self) -> None:
        tasks = [doomed(1, 3), failed(2), failed(3)]
        found = workflow_of(W, tasks)
        assert found is not None
        assert found.culprit == found.nodes[1]
        fine = workflow_of(W, [failed(1), tolerant(2, DONE, 1)])
        assert fine is not None
        assert fine.culprit is None
        running = workflow_of(W, [member(1, State.QUEUED)])
        assert running is not None
        assert running.culprit is None

    def test_tasks_that_were_deleted_leave_gaps(self) -> None:
        found = workflow_of(W, [member(2), member(3, DONE, 1, 2)])
        assert found is not None
        assert (found.complete, found.state) == (False, WorkflowState.COMPLETED)
        assert workflow_of(W, []) is None

    def test_no_nodes(self) -> None:
        assert state_of([]) is WorkflowState.COMPLETED


def node(number: int, state: State, *parents: int, **changes: Any) -> WorkflowNode:
    return WorkflowNode(
        **{
            "task_id": numbered(W, number),
            "name": f"node {number}",
            "type": "email",
            "state": state,
            "parents": tuple(numbered(W, parent) for parent in parents),
            "on_parent_failure": OnParentFailure.CANCEL,
            "error": None,
            "doomed": False,
            "answers": number == 3,
            "on_exit": False,
            "started_at": None,
            "ended_at": NOON + timedelta(seconds=number),
            **changes,
        }
    )


class Store:
    """Answers by way of calls like any engine, and records them."""

    def __init__(self, *tasks: Task) -> None:
        self.tasks = {task.task_id: task for task in tasks}
        self.reads: list[int] = []
        self.cancelled: list[list[str]] = []

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        self.reads.append(len(task_ids))
        yield
        return [self.tasks.get(id) for id in task_ids]

    @writes
    def cancel(self, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
        self.cancelled.append(list(task_ids))
        yield
        return [Cancelled(id, applied=True, state=State.QUEUED) for id in task_ids]

    def run(self, op: Op[Any]) -> Any:
        return perform(op.flow(), lambda _: None)

    def found(self) -> Workflow | None:
        found: Workflow | None = self.run(workflow(self, W))
        return found


class TestOperations:
    def test_a_small_one_takes_one_read(self) -> None:
        store = Store(member(1), member(3))
        found = store.found()
        assert found is not None
        assert [each.name for each in found.nodes] == ["node 1", "node 3"]
        assert store.reads == [100]

    def test_a_large_one_takes_two(self) -> None:
        store = Store(*(member(number, of=150) for number in range(1, 151)))
        found = store.found()
        assert found is not None
        assert len(found.nodes) == 150
        assert store.reads == [100, 50]

    def test_the_first_ones_may_be_gone(self) -> None:
        store = Store(member(999, of=999))
        found = store.found()
        assert found is not None
        assert not found.complete
        assert store.reads == [100, 899]
        assert Store().found() is None

    def test_tasks_of_others_are_not_among_them(self) -> None:
        mine, theirs = member(1, owner="me"), member(2, owner="them")
        other = replace(member(3, owner="me"), membership=Membership("x", 4))
        store = Store(
            *(mine, theirs, other),
            stored(task_id=numbered(W, 4)),
            replace(member(5), workflow_id=OTHER),
            replace(member(6), membership=None),
        )
        found = store.found()
        assert found is not None
        assert [each.task_id for each in found.nodes] == [mine.task_id]

    def test_an_id_is_an_id(self) -> None:
        with pytest.raises(InvalidTaskId):
            Store().run(workflow(Store(), "x"))

    def test_cancelling_begins_with_the_last_and_leaves_what_has_ended(self) -> None:
        states = [DONE, State.EXECUTING, *[State.SCHEDULED] * 600, State.FAILED]
        tasks = [member(place, state, of=603) for place, state in enumerate(states, 1)]
        store = Store(*tasks)
        answers: list[Cancelled] = store.run(cancel_workflow(store, W))
        assert [answer.task_id for answer in answers] == [
            numbered(W, number) for number in range(602, 1, -1)
        ]
        assert list(map(len, store.cancelled)) == [500, 101]
        empty = Store()
        assert empty.run(cancel_workflow(empty, W)) == []
