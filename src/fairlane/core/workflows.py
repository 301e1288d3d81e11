"""Workflows: tasks that were stored together and depend on each other. See `membership`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.flow import Flow, Op, reads, writes
from fairlane.core.ids import checked
from fairlane.core.machine import DEPENDENCY_FAILED
from fairlane.core.membership import ids_of
from fairlane.core.model import Cancelled, OnFailure, Task
from fairlane.core.states import LIVE, State

FIRST_READ = 100
"""How many tasks are read before it is known how many there are."""


class WorkflowState(StrEnum):
    """Where a workflow stands."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WorkflowNode(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a workflow."""

    task_id: str
    name: str
    type: str
    state: State
    parents: tuple[str, ...]
    """The ids of the tasks that it depends on; some may not be of the workflow."""
    on_parent_failure: OnParentFailure
    error: str | None
    """The message of its error."""
    doomed: bool
    """It never ran, because a task that it depends on did not complete."""
    answers: bool
    """Its result is the workflow's, or one of those of which the workflow's is a list."""
    on_exit: bool
    """It runs when all others have ended, whatever became of them."""
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def live(self) -> bool:
        """Return whether it has not ended."""
        return self.state in LIVE


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as its tasks tell it. `complete`: none of them has been deleted."""

    workflow_id: str
    name: str | None
    state: WorkflowState
    on_failure: OnFailure
    nodes: tuple[WorkflowNode, ...]
    created_at: datetime
    ended_at: datetime | None
    complete: bool

    @property
    def culprit(self) -> WorkflowNode | None:
        """Return the first task that failed or was cancelled, if the workflow is not completed."""
        return None if self.state is WorkflowState.COMPLETED else _first(unforgiven(self.nodes))

    @property
    def stoppable(self) -> list[str]:
        """Return the tasks that have not ended, but not the one that runs at the end.

        The last ones come first: cancelled in this order, none starts because those that it waits
        for have ended.
        """
        return [each.task_id for each in self.nodes[::-1] if each.live and not each.on_exit]

    @property
    def condemned(self) -> list[str]:
        """Return the tasks to be cancelled because another has ended badly."""
        if self.on_failure is not OnFailure.CANCEL or not any(unforgiven(self.nodes)):
            return []
        return self.stoppable


# -- rules -----------------------------------------------------------------------------------------


def workflow_of(workflow_id: str, tasks: Sequence[Task]) -> Workflow | None:
    """Return a workflow, from those of its tasks that are there."""
    if not tasks:
        return None
    first = tasks[0]
    assert first.membership is not None
    nodes = tuple(map(_node_of, tasks))
    state = state_of(nodes)
    ends = (node.ended_at for node in nodes if node.ended_at is not None)
    return Workflow(
        workflow_id=workflow_id,
        name=first.membership.name,
        state=state,
        on_failure=first.membership.on_failure,
        nodes=nodes,
        created_at=min(task.created_at for task in tasks),
        ended_at=None if state is WorkflowState.RUNNING else max(ends, default=None),
        complete=len(nodes) == first.membership.nodes,
    )


def state_of(nodes: Sequence[WorkflowNode]) -> WorkflowState:
    """Return the state of a workflow.

    It is completed although a task failed if that task has dependents, and all of them go on. A
    task that failed counts more than one that somebody cancelled. The task that runs at the end
    counts like any other, but what it goes on from is not forgiven because of that.
    """
    if any(node.live for node in nodes):
        return WorkflowState.RUNNING
    bad = list(unforgiven(nodes))
    if not bad:
        return WorkflowState.COMPLETED
    if any(node.state is State.CANCELLED and not node.doomed for node in bad) and all(
        node.state is State.CANCELLED for node in bad
    ):
        return WorkflowState.CANCELLED
    return WorkflowState.FAILED


def unforgiven(nodes: Iterable[WorkflowNode]) -> Iterator[WorkflowNode]:
    """Yield the nodes that ended badly, except those whose dependents all go on."""
    nodes = list(nodes)
    strict: dict[str, bool] = {}
    """Whether a node has a dependent that does not go on, for those with dependents."""
    for node in nodes:
        for parent in () if node.on_exit else node.parents:
            stops = node.on_parent_failure is OnParentFailure.CANCEL
            strict[parent] = strict.get(parent, False) or stops
    for node in nodes:
        if not node.live and node.state is not State.COMPLETED and strict.get(node.task_id, True):
            yield node


def _first(bad: Iterable[WorkflowNode]) -> WorkflowNode | None:
    """Return the node that was the first to end badly, rather than because of another."""
    return min(
        bad,
        key=lambda node: (node.doomed, node.ended_at is None, node.ended_at, node.task_id),
        default=None,
    )


def _node_of(task: Task) -> WorkflowNode:
    assert task.membership is not None
    return WorkflowNode(
        task_id=task.task_id,
        name=task.membership.node,
        type=task.type,
        state=task.state,
        parents=task.depends_on,
        on_parent_failure=OnParentFailure.CONTINUE if task.tolerant else OnParentFailure.CANCEL,
        error=None if task.error is None else task.error.message,
        doomed=task.error is not None and task.error.reason == DEPENDENCY_FAILED,
        answers=task.membership.answers,
        on_exit=task.membership.on_exit,
        started_at=task.started_at,
        ended_at=task.completed_at,
    )


# -- operations ------------------------------------------------------------------------------------


class Reads(Protocol):
    """The operation that reads tasks."""

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...


class Cancels(Protocol):
    """The operation that cancelling is composed of."""

    def cancel(self, task_ids: Sequence[str]) -> Op[list[Cancelled]]: ...


class Verbs(Reads, Cancels, Protocol):
    """The operations that they are composed of."""


@reads
def workflow(self: Reads, workflow_id: str) -> Flow[Workflow | None]:
    return (yield from _read(self, workflow_id))


@writes
def cancel_workflow(self: Verbs, workflow_id: str) -> Flow[list[Cancelled]]:
    found = yield from _read(self, workflow_id)
    return (yield from cancel_all(self, [] if found is None else found.stoppable))


def cancel_all(self: Cancels, live: Sequence[str]) -> Flow[list[Cancelled]]:
    """Cancel any number of tasks, in this order."""
    answers: list[Cancelled] = []
    for start in range(0, len(live), limits.BATCH):
        answers += yield from self.cancel(live[start : start + limits.BATCH]).flow()
    return answers


def read_workflow(self: Reads, workflow_id: str, size: int) -> Flow[Workflow | None]:
    """Read a workflow of which it is known how many tasks it has."""
    tasks = yield from _members(self, workflow_id, 1, size)
    return workflow_of(workflow_id, [task for task in tasks if _belongs(task, tasks[0])])


def _read(self: Reads, workflow_id: str) -> Flow[Workflow | None]:
    return workflow_of(workflow_id, (yield from tasks_of(self, workflow_id)))


def tasks_of(self: Reads, workflow_id: str) -> Flow[list[Task]]:
    """Return the tasks of a workflow, as far as they are there, without what can be large."""
    checked(workflow_id)
    tasks = yield from _members(self, workflow_id, 1, FIRST_READ)
    # Nothing tells how many there were once the first ones are gone.
    size = limits.WORKFLOW_NODES if not tasks else _size_of(tasks)
    if size > FIRST_READ:
        tasks += yield from _members(self, workflow_id, FIRST_READ + 1, size)
    return [task for task in tasks if _belongs(task, tasks[0])]


def _members(self: Reads, workflow_id: str, first: int, last: int) -> Flow[list[Task]]:
    found = yield from self.heads(ids_of(workflow_id, first, last)).flow()
    return [
        task
        for task in found
        # Ids that follow a workflow's may be those of others.
        if task is not None and task.workflow_id == workflow_id and task.membership is not None
    ]


def _size_of(tasks: Sequence[Task]) -> int:
    membership = tasks[0].membership
    assert membership is not None
    return membership.nodes


def _belongs(task: Task, first: Task) -> bool:
    """Return whether two tasks were submitted together: anybody can name a workflow."""
    assert task.membership is not None
    assert first.membership is not None
    return (task.owner, task.membership.nodes) == (first.owner, first.membership.nodes)
