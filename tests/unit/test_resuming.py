"""Resuming a workflow: what is to run again, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.core.errors import InvalidTaskId, StoreBusy, UnknownNode, WorkflowRunning
from fairlane.core.flow import Flow, Op, perform, reads, writes
from fairlane.core.ids import numbered
from fairlane.core.model import Deleted, Replayed, Task
from fairlane.core.reruns import Rerun
from fairlane.core.resuming import delete_workflow, plan, resume_workflow
from fairlane.core.states import TERMINAL, State
from fairlane.core.workflows import workflow_of
from tests.unit.test_workflows import GONE, W, doomed, failed, member, tolerant


def planned(tasks: Sequence[Task], from_node: str | None = None) -> list[int]:
    """The numbers of the tasks that are to run again."""
    found = workflow_of(W, tasks)
    assert found is not None
    numbers = {numbered(W, number): number for number in range(1, 1_000)}
    return [numbers[task_id] for task_id in plan(found.nodes, from_node)]


class TestPlan:
    @pytest.mark.parametrize(
        ("tasks", "numbers"),
        [
            ([member(1), member(2, State.COMPLETED, 1)], []),
            ([member(1, State.EXECUTING), member(2, State.SCHEDULED, 1)], []),
            ([failed(1), doomed(2, 1), doomed(3, 2)], [1, 2, 3]),
            ([member(1), failed(2, 1), doomed(3, 2)], [2, 3]),
            ([member(1), member(2, State.DEAD_LETTER), doomed(3, 1, 2)], [2, 3]),
            ([failed(1), member(2, State.EXECUTING), doomed(3, 1, 2)], [1, 3]),
            ([member(1, GONE), member(2, GONE, 1)], [1, 2]),
            # Parents come first, whatever their numbers are.
            ([doomed(1, 3), doomed(2, 1), failed(3)], [3, 1, 2]),
            # What others went on from stays, unless one of them runs again.
            ([failed(1), tolerant(2, State.COMPLETED, 1)], []),
            ([failed(1), tolerant(2, State.FAILED, 1)], [1, 2]),
            ([failed(1), tolerant(2, State.FAILED, 1), tolerant(3, State.COMPLETED, 2)], []),
            ([failed(1), tolerant(2, State.EXECUTING, 1), failed(3)], [3]),
            ([failed(1), tolerant(2, State.COMPLETED, 1), doomed(3, 1)], [1, 3]),
            # Parents that are not there, or no members.
            ([doomed(2, 1), doomed(3, 2)], [2, 3]),
            ([doomed(2, 700)], [2]),
            # A circle of tasks that were deleted and submitted again.
            ([failed(1, 2), failed(2, 1), failed(3)], [3, 1, 2]),
        ],
    )
    def test_what_failed_and_what_waits_for_it(self, tasks: list[Task], numbers: list[int]) -> None:
        assert planned(tasks) == numbers

    def test_from_a_node(self) -> None:
        tasks = [
            *(member(1), member(2, State.COMPLETED, 1), member(3, State.COMPLETED, 1)),
            *(member(4, State.COMPLETED, 2), failed(5)),
        ]
        assert planned(tasks, "node 2") == [5, 2, 4]
        assert planned(tasks, "node 1") == [1, 5, 2, 3, 4]
        assert planned(tasks, "node 5") == [5]
        assert planned(tasks) == [5]

    def test_from_a_node_that_runs(self) -> None:
        tasks = [member(1, State.EXECUTING), member(2, State.SCHEDULED, 1), failed(3)]
        assert planned(tasks, "node 1") == [3]

    def test_from_a_node_that_there_is_not(self) -> None:
        with pytest.raises(
            UnknownNode, match=r"no task called .load.\. It has these, or more: node 1, node 2"
        ):
            planned([member(1), member(2)], "load")


class Store:
    """Answers by way of calls like any engine, and records them. `left`: how often something else
    comes first."""

    def __init__(self, *tasks: Task, left: int = 0) -> None:
        self.tasks = {task.task_id: task for task in tasks}
        self.left = left
        self.asked: list[Any] = []
        self.reopened: list[str] = []
        self.forgotten: list[str] = []

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        yield
        return [self.tasks.get(id) for id in task_ids]

    @writes
    def rerun(self, reruns: Sequence[Rerun]) -> Flow[list[Replayed] | None]:
        yield
        self.left -= 1
        if self.left >= 0:
            return None
        self.asked.append(reruns)
        return [Replayed(each.task_id, applied=True, state=State.FAILED) for each in reruns]

    @writes
    def reopen_workflow(self, workflow_id: str) -> Flow[bool]:
        yield
        self.reopened.append(workflow_id)
        return True

    @writes
    def forget_workflow(self, workflow_id: str) -> Flow[bool]:
        yield
        self.forgotten.append(workflow_id)
        return True

    @writes
    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Flow[list[Deleted]]:
        yield
        self.asked.append((list(task_ids), among))
        return [Deleted(id, applied=True, state=State.FAILED) for id in task_ids]

    def run(self, op: Op[Any]) -> Any:
        return perform(op.flow(), lambda _: None)


class TestResume:
    def test_in_batches_as_the_tasks_were_read(self) -> None:
        store = Store(*[member(1, of=603), *(member(n, GONE, of=603) for n in range(2, 603))])
        answers = store.run(resume_workflow(store, W))
        assert [each.task_id for each in answers] == [numbered(W, n) for n in range(2, 603)]
        assert list(map(len, store.asked)) == [500, 101]
        assert store.asked[0][0] == Rerun.of(store.tasks[numbered(W, 2)])
        assert store.reopened == [W]

    def test_what_is_left_over_comes_first(self) -> None:
        store = Store(failed(1), left=3)
        assert len(store.run(resume_workflow(store, W))) == 1
        store = Store(failed(1), left=1_000)
        with pytest.raises(StoreBusy):
            store.run(resume_workflow(store, W))
        assert store.asked == []

    def test_nothing(self) -> None:
        for store in (Store(), Store(member(1))):
            assert store.run(resume_workflow(store, W)) == []
            assert store.asked == store.reopened == []
        with pytest.raises(InvalidTaskId):
            Store().run(resume_workflow(Store(), "x"))
        empty = Store()
        assert empty.run(resume_workflow(empty, W, from_node="load")) == []


class TestDelete:
    def test_the_last_ones_first(self) -> None:
        store = Store(*(member(number, of=600) for number in range(1, 601)))
        answers = store.run(delete_workflow(store, W))
        assert [each.task_id for each in answers] == [numbered(W, n) for n in range(600, 0, -1)]
        assert [(len(ids), among) for ids, among in store.asked] == [
            (500, TERMINAL),
            (100, TERMINAL),
        ]
        assert store.forgotten == [W]

    def test_not_while_it_runs(self) -> None:
        store = Store(member(1), member(2, State.EXECUTING))
        with pytest.raises(WorkflowRunning):
            store.run(delete_workflow(store, W))
        assert store.asked == store.forgotten == []

    def test_nothing(self) -> None:
        store = Store()
        assert store.run(delete_workflow(store, W)) == []
