"""The operations of a store, as far as a bound token may use them.

What a token may not see does not exist here: a task outside of its bounds is answered like an
unknown one. An operation that is not a method here cannot be used at all, so that one that is added
to stores is refused until somebody decides otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec

from fairlane.core import resuming, workflows
from fairlane.core.definitions import Published
from fairlane.core.dependencies import parents_elsewhere
from fairlane.core.errors import (
    Conflict,
    DuplicateTask,
    IdempotencyConflict,
    OutOfBounds,
    TaskIdTaken,
    UnknownDependency,
)
from fairlane.core.estimates import Position
from fairlane.core.facts import Facts
from fairlane.core.filters import Filter, Found, Page, Total
from fairlane.core.flow import Flow, Op, reads, writes
from fairlane.core.holdings import Holdings, Run
from fairlane.core.ids import checked, checked_all
from fairlane.core.lanes import Controls
from fairlane.core.limits import SUBMIT_BATCH
from fairlane.core.model import (
    Accepted,
    Cancelled,
    Deleted,
    NewTask,
    NewWorker,
    Replayed,
    Report,
    Start,
    Swept,
    Task,
    Verdict,
)
from fairlane.core.ownership import Bounds
from fairlane.core.reruns import Rerun
from fairlane.core.states import State
from fairlane.core.store import Operations
from fairlane.core.why import Reason
from fairlane.core.workflow_list import ALL, WorkflowFilter, WorkflowPage
from fairlane.core.workflows import Workflow

replace = msgspec.structs.replace

A = TypeVar("A", Cancelled, Replayed, Deleted)


class BoundOperations:
    """Operations on the tasks that are within bounds."""

    def __init__(self, ops: Operations, bounds: Bounds) -> None:
        self._ops = ops
        self._bounds = bounds

    # -- submitting --------------------------------------------------------------------------------

    @writes
    def submit(self, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
        """Submit tasks that `Bounds.own_task` has made."""
        yield from self._check_new(tasks)
        answers = yield from self._ops.submit(tasks).flow()
        yield from self._check_known(tasks, answers)
        return answers

    @writes
    def submit_workflow(self, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
        """Submit the tasks of a workflow, which `Bounds.own_task` has made."""
        yield from self._check_new(tasks)
        answers = yield from self._ops.submit_workflow(tasks).flow()
        yield from self._check_known(tasks, answers)
        return answers

    def workflow_id_for(self, key: str, workflow_id: str) -> Op[str]:
        """Return the id of the workflow that has this key in the namespace of the subject."""
        return self._ops.workflow_id_for(self._bounds.own_key(key), workflow_id)

    @reads
    def check_new(self, tasks: Sequence[NewTask]) -> Flow[None]:
        """Raise unless these tasks may be submitted: the first half of `submit`."""
        yield from self._check_new(tasks)

    @reads
    def check_known(self, tasks: Sequence[NewTask], answers: Sequence[Accepted]) -> Flow[None]:
        """Raise if an answer names a task outside of the bounds: the second half of `submit`."""
        yield from self._check_known(tasks, answers)

    def _check_new(self, tasks: Sequence[NewTask]) -> Flow[None]:
        if not all(map(self._bounds.admits_new, tasks)):
            raise OutOfBounds
        stored = yield from self._outside([task.task_id for task in tasks])
        if stored:
            raise TaskIdTaken
        if (yield from self._outside(parents_elsewhere(tasks))):
            raise UnknownDependency

    def _check_known(self, tasks: Sequence[NewTask], answers: Sequence[Accepted]) -> Flow[None]:
        # A task may have been stored since the check; and a key may belong to a task of the same
        # subject that this token may not see.
        known = {
            each.task_id: task for task, each in zip(tasks, answers, strict=True) if each.known
        }
        for task_id in (yield from self._outside(list(known))):
            raise _refusal(task_id, known[task_id])

    def _outside(self, task_ids: Sequence[str]) -> Flow[list[str]]:
        """Return those tasks that exist, and are not within the bounds."""
        found: list[Task | None] = []
        for start in range(0, len(task_ids), SUBMIT_BATCH):
            found += yield from self._ops.heads(task_ids[start : start + SUBMIT_BATCH]).flow()
        return [
            task.task_id for task in found if task is not None and not self._bounds.admits(task)
        ]

    # -- reading -----------------------------------------------------------------------------------

    @reads
    def get(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        return self._admitted((yield from self._ops.get(task_ids).flow()))

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        return (yield from self._heads(task_ids))

    def _heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        return self._admitted((yield from self._ops.heads(task_ids).flow()))

    def _admitted(self, tasks: list[Task | None]) -> list[Task | None]:
        return [task if task is not None and self._bounds.admits(task) else None for task in tasks]

    def definition(self, type: str) -> Op[Published | None]:
        """Return what is known about a type: it says nothing of tasks."""
        return self._ops.definition(type)

    @reads
    def find(self, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
        narrowed = self._bounds.narrow(filter)
        return (yield from self._ops.find(narrowed, limit, cursor).flow())

    @reads
    def page(self, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Page]:
        narrowed = self._bounds.narrow(filter)
        return (yield from self._ops.page(narrowed, limit, cursor).flow())

    @reads
    def total(self, filter: Filter) -> Flow[Total]:
        return (yield from self._ops.total(self._bounds.narrow(filter)).flow())

    @reads
    def position(self, task_ids: Sequence[str]) -> Flow[list[Position | None]]:
        tasks = yield from self._heads(task_ids)
        positions = yield from self._ops.position(task_ids).flow()
        return [
            None if task is None else place for task, place in zip(tasks, positions, strict=True)
        ]

    @reads
    def why(self, task_id: str) -> Flow[list[Reason] | None]:
        checked(task_id)
        (task,) = yield from self._heads([task_id])
        return None if task is None else (yield from self._ops.why(task_id).flow())

    @reads
    def workflow(self, workflow_id: str) -> Flow[Workflow | None]:
        """Return a workflow, as if those tasks that are out of bounds did not exist."""
        return (yield from workflows.workflow(self, workflow_id).flow())

    def workflow_page(
        self, filter: WorkflowFilter = ALL, limit: int = 50, cursor: str | None = None
    ) -> Op[WorkflowPage]:
        """Return a page of the workflows all of whose tasks are within the bounds."""
        return self._ops.workflow_page(replace(filter, bounds=self._bounds), limit, cursor)

    @reads
    def facts(self) -> Flow[Facts]:
        """Return the time, and nothing else."""
        now = (yield from self._ops.facts().flow()).now
        return Facts(now, {}, [], [], Controls(), {}, {}, [], [])

    # -- changing ----------------------------------------------------------------------------------

    @writes
    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Flow[list[Cancelled]]:
        def apply(within: Sequence[str]) -> Op[list[Cancelled]]:
            return self._ops.cancel(within, among=among)

        return (yield from self._change(task_ids, apply, Cancelled))

    @writes
    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
        among: frozenset[State] | None = None,
    ) -> Flow[list[Replayed]]:
        def apply(within: Sequence[str]) -> Op[list[Replayed]]:
            return self._ops.replay(
                within, reset_retry_count=reset_retry_count, level=level, among=among
            )

        return (yield from self._change(task_ids, apply, Replayed))

    @writes
    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Flow[list[Deleted]]:
        def apply(within: Sequence[str]) -> Op[list[Deleted]]:
            return self._ops.delete(within, among=among)

        return (yield from self._change(task_ids, apply, Deleted))

    def _change(
        self,
        task_ids: Sequence[str],
        apply: Callable[[Sequence[str]], Op[list[A]]],
        answer: Callable[..., A],
    ) -> Flow[list[A]]:
        checked_all(task_ids)
        tasks = yield from self._heads(task_ids)
        within = [task.task_id for task in tasks if task is not None]
        answers = iter((yield from apply(within).flow()) if within else ())
        return [
            answer(task_id, applied=False, state=None) if task is None else next(answers)
            for task_id, task in zip(task_ids, tasks, strict=True)
        ]

    @writes
    def cancel_workflow(self, workflow_id: str) -> Flow[list[Cancelled]]:
        return (yield from workflows.cancel_workflow(self, workflow_id).flow())

    @writes
    def rerun(self, reruns: Sequence[Rerun]) -> Flow[list[Replayed] | None]:
        tasks = yield from self._heads([each.task_id for each in reruns])
        known = [task is not None for task in tasks]
        within = [each for each, there in zip(reruns, known, strict=True) if there]
        found = (yield from self._ops.rerun(within).flow()) if within else []
        if found is None:
            return None
        answers = iter(found)
        return [
            next(answers) if there else Replayed(each.task_id, applied=False, state=None)
            for each, there in zip(reruns, known, strict=True)
        ]

    @writes
    def reopen_workflow(self, workflow_id: str) -> Flow[bool]:
        if (yield from self.workflow(workflow_id).flow()) is None:
            return False
        return (yield from self._ops.reopen_workflow(workflow_id).flow())

    @writes
    def forget_workflow(self, workflow_id: str) -> Flow[bool]:
        found = yield from self.workflow(workflow_id).flow()
        if found is None or not found.complete:  # some of its tasks may be those of others
            return False
        return (yield from self._ops.forget_workflow(workflow_id).flow())

    @writes
    def resume_workflow(
        self, workflow_id: str, *, from_node: str | None = None
    ) -> Flow[list[Replayed]]:
        return (yield from resuming.resume_workflow(self, workflow_id, from_node=from_node).flow())

    @writes
    def delete_workflow(self, workflow_id: str) -> Flow[list[Deleted]]:
        return (yield from resuming.delete_workflow(self, workflow_id).flow())

    @writes
    def cancel_where(self, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
        return (yield from self._ops.cancel_where(self._bounds.narrow(filter), cursor).flow())

    @writes
    def replay_where(
        self,
        filter: Filter,
        cursor: str | None = None,
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
    ) -> Flow[Swept]:
        op = self._ops.replay_where(
            self._bounds.narrow(filter), cursor, reset_retry_count=reset_retry_count, level=level
        )
        return (yield from op.flow())

    @writes
    def delete_where(self, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
        return (yield from self._ops.delete_where(self._bounds.narrow(filter), cursor).flow())

    # -- for workers, whose tokens are bound to queues only ----------------------------------------

    @writes
    def register(self, worker: NewWorker) -> Flow[str]:
        queues = self._bounds.narrow_queues(worker.queues)
        narrowed = msgspec.structs.replace(worker, queues=queues)
        return (yield from self._ops.register(narrowed).flow())

    @writes
    def forget(self, worker_id: str) -> Flow[bool]:
        return (yield from self._ops.forget(worker_id).flow())

    @writes
    def start(self, worker_id: str, starts: Sequence[Start]) -> Flow[list[Verdict]]:
        verdicts = yield from self._ops.start(worker_id, starts).flow()
        return (yield from self._judge([each.task_id for each in starts], verdicts))

    @writes
    def progress(self, worker_id: str, reports: Sequence[Report]) -> Flow[list[Verdict]]:
        verdicts = yield from self._ops.progress(worker_id, reports).flow()
        return (yield from self._judge([each.task_id for each in reports], verdicts))

    @reads
    def holdings(self, worker_id: str, limit: int, cursor: str | None = None) -> Flow[Holdings]:
        return (yield from self._ops.holdings(worker_id, limit, cursor).flow())

    @reads
    def completions(
        self, types: Collection[str], queues: frozenset[str] | None = None
    ) -> Flow[dict[str, int]]:
        narrowed = self._bounds.narrow_queues(queues)
        return (yield from self._ops.completions(types, narrowed).flow())

    @writes
    def disown(self, worker_id: str, runs: Sequence[Run]) -> Flow[list[Verdict]]:
        verdicts = yield from self._ops.disown(worker_id, runs).flow()
        return (yield from self._judge([task_id for task_id, _ in runs], verdicts))

    @reads
    def judge(self, task_ids: Sequence[str], verdicts: Sequence[Verdict]) -> Flow[list[Verdict]]:
        """Return the verdicts on reports, as far as a worker may know them."""
        return (yield from self._judge(task_ids, verdicts))

    def _judge(self, task_ids: Sequence[str], verdicts: Sequence[Verdict]) -> Flow[list[Verdict]]:
        # A report applies only to what the worker holds, which was within the bounds.
        stale = [
            task_id
            for task_id, verdict in zip(task_ids, verdicts, strict=True)
            if verdict is Verdict.STALE
        ]
        outside = set((yield from self._outside(stale)))
        return [
            Verdict.MISSING if task_id in outside else verdict
            for task_id, verdict in zip(task_ids, verdicts, strict=True)
        ]


def _refusal(holder: str, task: NewTask) -> Conflict:
    """Return why a task is not stored: its id or its key belongs to one that may not be shown."""
    if holder == task.task_id:
        return TaskIdTaken()
    return DuplicateTask() if task.idempotency_key is None else IdempotencyConflict()
