"""Resuming a workflow from what failed, and deleting one that has ended.

Nothing of this is stored: what is left to do follows from the tasks as they stand. So it can be
interrupted after every batch, and two at once do no more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from fairlane.core import limits
from fairlane.core.errors import StoreBusy, UnknownNode, WorkflowRunning
from fairlane.core.flow import Flow, Op, writes
from fairlane.core.model import Deleted, Replayed, Task
from fairlane.core.reruns import Rerun
from fairlane.core.states import TERMINAL, State
from fairlane.core.text import shown
from fairlane.core.workflows import Reads, WorkflowNode, tasks_of, unforgiven, workflow_of

_TRIES: Final = 200
"""As often as that, up to 500 dependents of earlier ends are released before a batch."""


# -- rules -----------------------------------------------------------------------------------------


def plan(nodes: Sequence[WorkflowNode], from_node: str | None = None) -> list[str]:
    """Return the ids of the tasks that are to run again, parents before their children.

    These are those that ended badly, unless all that depends on them went on and is done; and, if
    `from_node` names a task, this task and all that depend on it, as far as they have ended.
    """
    chosen = _below(nodes, from_node)
    chosen |= {node.task_id for node in unforgiven(nodes)}
    ordered = _in_order(nodes)
    children: dict[str, list[str]] = {}
    for node in ordered:
        for parent in node.parents:
            children.setdefault(parent, []).append(node.task_id)
    for node in reversed(ordered):
        bad = not node.live and node.state is not State.COMPLETED
        if bad and not chosen.isdisjoint(children.get(node.task_id, ())):
            chosen.add(node.task_id)  # the others went on, but one of them runs again
    return [node.task_id for node in ordered if node.task_id in chosen and not node.live]


def _below(nodes: Sequence[WorkflowNode], name: str | None) -> set[str]:
    """Return the ids of the task of this name, and of all that depend on it."""
    if name is None:
        return set()
    found = {node.task_id for node in nodes if node.name == name}
    if not found:
        names = ", ".join(sorted({node.name for node in nodes})[:10])
        raise UnknownNode(
            f"The workflow has no task called {shown(name)}. It has these, or more: {names}."
        )
    for node in _in_order(nodes):
        if not found.isdisjoint(node.parents):
            found.add(node.task_id)
    return found


def _in_order(nodes: Sequence[WorkflowNode]) -> list[WorkflowNode]:
    """Return nodes with parents before their children, otherwise as they come.

    Those on a circle come last: there is one if a task was deleted, and submitted again under its
    id with other parents.
    """
    by_id = {node.task_id: node for node in nodes}
    missing = {node.task_id: sum(each in by_id for each in node.parents) for node in nodes}
    children: dict[str, list[WorkflowNode]] = {}
    for node in nodes:
        for parent in node.parents:
            children.setdefault(parent, []).append(node)
    ordered = {node.task_id: node for node in nodes if not missing[node.task_id]}
    waiting = list(ordered)
    for task_id in waiting:  # it grows
        for child in children.get(task_id, ()):
            missing[child.task_id] -= 1
            if not missing[child.task_id]:
                ordered[child.task_id] = child
                waiting.append(child.task_id)
    return list((ordered | by_id).values())


# -- operations ------------------------------------------------------------------------------------


class Resumes(Reads, Protocol):
    """The operations that resuming is composed of."""

    def rerun(self, reruns: Sequence[Rerun]) -> Op[list[Replayed] | None]: ...
    def reopen_workflow(self, workflow_id: str) -> Op[bool]: ...


class Deletes(Reads, Protocol):
    """The operations that deleting is composed of."""

    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Deleted]]: ...
    def forget_workflow(self, workflow_id: str) -> Op[bool]: ...


@writes
def resume_workflow(
    self: Resumes, workflow_id: str, *, from_node: str | None = None
) -> Flow[list[Replayed]]:
    tasks = {task.task_id: task for task in (yield from tasks_of(self, workflow_id))}
    found = workflow_of(workflow_id, list(tasks.values()))
    wanted = [] if found is None else plan(found.nodes, from_node)
    answers: list[Replayed] = []
    for start in range(0, len(wanted), limits.BATCH):
        batch = [tasks[task_id] for task_id in wanted[start : start + limits.BATCH]]
        answers += yield from _rerun(self, batch)
    if any(answer.applied for answer in answers):
        yield from self.reopen_workflow(workflow_id).flow()
    return answers


def _rerun(self: Resumes, tasks: Sequence[Task]) -> Flow[list[Replayed]]:
    reruns = [Rerun.of(task) for task in tasks]
    for _ in range(_TRIES):
        answers = yield from self.rerun(reruns).flow()
        if answers is not None:
            return answers
    raise StoreBusy("Tasks that depend on this workflow are still being released: try again.")


@writes
def delete_workflow(self: Deletes, workflow_id: str) -> Flow[list[Deleted]]:
    tasks = yield from tasks_of(self, workflow_id)
    if any(task.state not in TERMINAL for task in tasks):
        raise WorkflowRunning
    if tasks:
        yield from self.forget_workflow(workflow_id).flow()
    # The last ones first, so that what is left after an interruption has its parents.
    wanted = [task.task_id for task in tasks[::-1]]
    answers: list[Deleted] = []
    for start in range(0, len(wanted), limits.BATCH):
        batch = wanted[start : start + limits.BATCH]
        answers += yield from self.delete(batch, among=TERMINAL).flow()
    return answers
