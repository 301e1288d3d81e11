"""Tasks that depend on others: what they are given, and what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fairlane import State
from fairlane.core.inputs import RESULT, TaskInput
from fairlane.core.machine import DEPENDENCY_FAILED
from fairlane.core.model import Task
from fairlane.core.states import LIVE
from tests.e2e.history.dump import Dump
from tests.e2e.history.lines import History
from tests.e2e.history.terms import Terms, Violation

PARAMETER = "got"
"""The one that is the result of parents, of all types that tell what they took."""


def results_are_the_parents(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I22: a run takes the results with which its parents completed, in their places. In place of
    that of a parent that did not complete, it takes a note which parent that was."""
    for line in history.taken:
        task = dump.tasks.get(line.task)
        if task is None or any(parent not in dump.tasks for parent in task.depends_on):
            continue  # deleted since
        source = task.inputs.get(PARAMETER)
        wanted = None if source is None else _value(source, dump)
        if _told(line.value) != wanted:
            says = f"attempt {line.attempt} took {line.value} in place of {wanted}"
            yield Violation("I22", line.task, says)


def the_doomed_never_run(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I23: a task is cancelled for the end of a parent if and only if that ended badly, and it did
    not say that it goes on; and then it never runs."""
    for task_id, task in dump.tasks.items():
        if any(parent not in dump.tasks for parent in task.depends_on):
            continue
        states = [dump.tasks[parent].status for parent in task.depends_on]
        bad = any(state not in LIVE | {State.COMPLETED} for state in states)
        doomed = task.error is not None and task.error.reason == DEPENDENCY_FAILED
        if doomed and (task.tolerant or not bad):
            yield Violation("I23", task_id, f"was cancelled although its parents are {states}")
        if doomed and history.runs.get(task_id):
            yield Violation("I23", task_id, "was cancelled before it could run, and was run")
        if bad and not task.tolerant and task.status is not State.CANCELLED:
            yield Violation("I23", task_id, f"is {task.status}, although its parents are {states}")


def workflows_are_whole(_: History, dump: Dump, __: Terms) -> Iterator[Violation]:
    """I24: all tasks of a workflow are there, or none."""
    sizes: dict[str, int] = {}
    for task in dump.tasks.values():
        if task.workflow_id is not None and task.membership is not None:
            sizes[task.workflow_id] = task.membership.nodes
    found = Counter(task.workflow_id for task in dump.tasks.values() if task.membership)
    for workflow_id, size in sizes.items():
        if found[workflow_id] != size:
            says = f"{found[workflow_id]} of the {size} tasks of workflow {workflow_id} are there"
            yield Violation("I24", None, says)


def _value(source: TaskInput, dump: Dump) -> Any:
    """What a handler should have been given."""
    results = [_result(dump.tasks[parent]) for parent in source.parents]
    if not source.many:
        return results[0]
    return _arranged(results, list(source.nesting or ()))


def _arranged(results: Sequence[Any], nesting: list[int]) -> list[Any]:
    """Results in lists in each other, as the nesting says."""
    if not nesting:
        return list(results)
    rest = iter(results)

    def element() -> Any:
        size = nesting.pop(0)
        return next(rest) if size == RESULT else [element() for _ in range(size)]

    arranged = []
    while nesting:
        arranged.append(element())
    return arranged


def _result(task: Task) -> Any:
    if task.status is State.COMPLETED:
        return None if task.result is None else msgspec.json.decode(task.result)
    return {"task_id": task.task_id, "state": str(task.status)}


def _told(value: Any) -> Any:
    """What a handler says that it was given; of a failure, only which task it was of."""
    if isinstance(value, list):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return {name: value.get(name) for name in ("task_id", "state")}
    return value
