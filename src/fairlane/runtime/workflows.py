"""`WorkflowHandle`: a workflow that was submitted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from fairlane.core.backend import Backend
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import TaskFailed
from fairlane.core.flow import Op
from fairlane.core.machine import DEPENDENCY_FAILED
from fairlane.core.model import Cancelled, Deleted, Replayed
from fairlane.core.states import State
from fairlane.core.workflows import Workflow, WorkflowNode, WorkflowState
from fairlane.runtime.answers import Answer, answer_in, answer_of
from fairlane.runtime.calls import TaskSource, not_yet, not_yet_sync
from fairlane.runtime.failures import failure_of
from fairlane.runtime.mermaid import mermaid
from fairlane.runtime.planning import Plan
from fairlane.runtime.tasks import Task

R = TypeVar("R")
T = TypeVar("T")

Ended = Mapping[str, Task | None]


class WorkflowSource(TaskSource, Protocol):
    """The part of the application that a handle needs."""

    @property
    def backend(self) -> Backend: ...
    async def run(self, op: Op[T]) -> T: ...
    def run_sync(self, op: Op[T]) -> T: ...


class WorkflowHandle(Generic[R]):
    """A submitted workflow, and the type that its result is converted to."""

    __slots__ = ("_answer", "_app", "workflow_id")

    def __init__(self, app: WorkflowSource, workflow_id: str, plan: Plan | None = None) -> None:
        self._app = app
        self.workflow_id = workflow_id
        self._answer = None if plan is None else answer_of(plan)

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.workflow_id}>"

    @property
    def task_id(self) -> str | None:
        """The task whose result is the workflow's. None if that is a list of results, or if it is
        not known, as in the handle of an id."""
        return None if self._answer is None else self._answer.task_id

    async def result(self, timeout: Seconds | None = None) -> R:  # noqa: ASYNC109 (part of the API)
        """Wait for at most `timeout` (None: without limit), and return the workflow's result.

        Raises TaskFailed if there will be none: it is about the first task that failed. Raises
        ResultTimeout if it has not ended yet, with the reasons why it waits. The result of a graph
        that returns nothing is None, once all of its tasks have ended.
        """
        seconds = in_seconds(timeout)
        waits_for = self.workflow_id
        try:
            async with asyncio.timeout(seconds):
                answer = self._answer or self._answer_in(await self.state())
                waits_for = answer.wanted[-1]
                tasks = await asyncio.gather(*map(self._app.ended, answer.wanted))
        except TimeoutError:
            raise await not_yet(self._app, waits_for, seconds) from None
        ended = dict(zip(answer.wanted, tasks, strict=True))
        if _needs_look(answer, ended):
            found = await self.state()
            if (blamed := _blamed(answer, ended, found)) is not None:
                _fail(blamed, await self._app.get(blamed.task_id), found)
        value: R = answer.value(ended, self._app.codecs)
        return value

    def result_sync(self, timeout: Seconds | None = None) -> R:
        """Blocking twin of `result`. Raises EventLoopRunning where an event loop runs."""
        seconds = in_seconds(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        answer = self._answer or self._answer_in(self.state_sync())
        ended: dict[str, Task | None] = {}
        for task_id in answer.wanted:
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                ended[task_id] = self._app.ended_sync(task_id, left)
            except TimeoutError:
                raise not_yet_sync(self._app, task_id, seconds) from None
        if _needs_look(answer, ended):
            found = self.state_sync()
            if (blamed := _blamed(answer, ended, found)) is not None:
                _fail(blamed, self._app.get_sync(blamed.task_id), found)
        value: R = answer.value(ended, self._app.codecs)
        return value

    async def state(self) -> Workflow | None:
        """Return the workflow with all of its tasks, or None if they were deleted."""
        return await self._app.run(self._app.backend.ops.workflow(self.workflow_id))

    def state_sync(self) -> Workflow | None:
        """Blocking twin of `state`."""
        return self._app.run_sync(self._app.backend.ops.workflow(self.workflow_id))

    async def status(self) -> WorkflowState | None:
        """Return the workflow's state, or None if its tasks were deleted."""
        return _status(await self.state())

    def status_sync(self) -> WorkflowState | None:
        """Blocking twin of `status`."""
        return _status(self.state_sync())

    async def nodes(self) -> tuple[WorkflowNode, ...]:
        """Return its tasks, those first that can run first. Deleted ones are left out."""
        return _nodes(await self.state())

    def nodes_sync(self) -> tuple[WorkflowNode, ...]:
        """Blocking twin of `nodes`."""
        return _nodes(self.state_sync())

    async def cancel(self) -> list[Cancelled]:
        """Cancel the tasks that have not ended. Running handlers are cancelled too."""
        return await self._app.run(self._app.backend.ops.cancel_workflow(self.workflow_id))

    def cancel_sync(self) -> list[Cancelled]:
        """Blocking twin of `cancel`."""
        return self._app.run_sync(self._app.backend.ops.cancel_workflow(self.workflow_id))

    async def resume(self, from_: str | None = None) -> list[Replayed]:
        """Run the tasks again that failed, died or were cancelled, and those that wait for them.

        Completed ones keep their results, except the task of the name `from_` and all that depend
        on it. The list is empty if there is nothing to resume. Raises UnknownNode.
        """
        ops = self._app.backend.ops
        return await self._app.run(ops.resume_workflow(self.workflow_id, from_node=from_))

    def resume_sync(self, from_: str | None = None) -> list[Replayed]:
        """Blocking twin of `resume`."""
        ops = self._app.backend.ops
        return self._app.run_sync(ops.resume_workflow(self.workflow_id, from_node=from_))

    async def delete(self) -> list[Deleted]:
        """Delete all of its tasks. Raises WorkflowRunning unless it has ended."""
        return await self._app.run(self._app.backend.ops.delete_workflow(self.workflow_id))

    def delete_sync(self) -> list[Deleted]:
        """Blocking twin of `delete`."""
        return self._app.run_sync(self._app.backend.ops.delete_workflow(self.workflow_id))

    async def mermaid(self) -> str:
        """Return a Mermaid flowchart of its tasks and their states."""
        return mermaid(self._there(await self.state()))

    def mermaid_sync(self) -> str:
        """Blocking twin of `mermaid`."""
        return mermaid(self._there(self.state_sync()))

    def _answer_in(self, found: Workflow | None) -> Answer:
        return answer_in(self._there(found))

    def _there(self, found: Workflow | None) -> Workflow:
        if found is None:
            raise TaskFailed(
                f"There is no workflow {self.workflow_id}: its tasks were deleted, or never "
                "submitted here."
            )
        return found


def _status(found: Workflow | None) -> WorkflowState | None:
    return None if found is None else found.state


def _nodes(found: Workflow | None) -> tuple[WorkflowNode, ...]:
    return () if found is None else found.nodes


def _is_doomed(task: Task) -> bool:
    return task.error is not None and task.error.reason == DEPENDENCY_FAILED


def _needs_look(answer: Answer, ended: Ended) -> bool:
    """Return whether the other tasks say why there is no result."""
    there = [task for task in ended.values() if task is not None]
    if answer.part is None:
        return any(task.state is not State.COMPLETED for task in there)
    return any(map(_is_doomed, there))


def _blamed(answer: Answer, ended: Ended, found: Workflow | None) -> WorkflowNode | None:
    """Return the task because of which there is no result. None: there is one, or nobody knows."""
    if found is None:
        return None
    own = next((task for task in ended.values() if task is not None and _is_bad(task)), None)
    if answer.part is not None and own is not None:
        own_nodes = (node for node in found.nodes if node.task_id == own.task_id)
        return next(own_nodes, found.culprit)
    return found.culprit


def _is_bad(task: Task) -> bool:
    """Return whether a task ended badly by itself."""
    return task.state is not State.COMPLETED and not _is_doomed(task)


def _fail(blamed: WorkflowNode, task: Task | None, found: Workflow | None) -> None:
    """Raise TaskFailed for a task of a workflow, unless it has been deleted."""
    if task is None or found is None:
        return
    where = "its workflow" if found.name is None else f"the workflow {found.name}"
    raise failure_of(task, f"Task {task.task_id} ({blamed.name} in {where})")
