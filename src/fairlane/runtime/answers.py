"""How the result of a workflow is made of the results of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from fairlane.core.workflows import Workflow
from fairlane.runtime.calls import result_of
from fairlane.runtime.codecs import Codec
from fairlane.runtime.planning import Plan
from fairlane.runtime.shapes import Prepared, Tree, is_mixed
from fairlane.runtime.tasks import Task


class One(msgspec.Struct, frozen=True):
    """The result of a task, and the type that it is converted to."""

    task_id: str
    hint: Any


class Several(msgspec.Struct, frozen=True):
    """A list of results, or a tuple."""

    parts: tuple[Part, ...]
    is_tuple: bool


Part: TypeAlias = One | Several


class Answer(msgspec.Struct, frozen=True):
    """What a workflow's result is made of (None: the result is None), and which tasks it has."""

    part: Part | None
    task_ids: tuple[str, ...]

    @property
    def wanted(self) -> list[str]:
        """Return the tasks to wait for: all of them, if none has the result."""
        ids = self.task_ids if self.part is None else tuple(_ids(self.part))
        return list(dict.fromkeys(ids))

    @property
    def task_id(self) -> str | None:
        """Return the task whose result it is, if there is one."""
        return self.part.task_id if isinstance(self.part, One) else None

    def value(self, tasks: Mapping[str, Task | None], codecs: Mapping[str, Codec]) -> Any:
        """Return the result. Raises TaskFailed if one that is needed is missing."""
        return None if self.part is None else _value(self.part, tasks, codecs)


def answer_of(plan: Plan) -> Answer:
    """Return what the result of a planned workflow is made of."""
    part = None if plan.returns is None else _part_of(plan.returns)
    return Answer(part, tuple(call.task.task_id for call in plan.calls))


def answer_in(workflow: Workflow) -> Answer:
    """Return the same for a workflow in the store, which knows no types. The results of several
    tasks are one list, in the order of the tasks."""
    ids = tuple(node.task_id for node in workflow.nodes)
    parts = tuple(One(node.task_id, Any) for node in workflow.nodes if node.answers)
    if len(parts) > 1:
        return Answer(Several(parts, is_tuple=False), ids)
    return Answer(parts[0] if parts else None, ids)


def _part_of(tree: Tree) -> Part:
    if isinstance(tree, Prepared):
        return One(tree.task.task_id, tree.hint)
    return Several(tuple(map(_part_of, tree)), is_mixed(tree))


def _ids(part: Part) -> Iterator[str]:
    if isinstance(part, One):
        yield part.task_id
    else:
        for each in part.parts:
            yield from _ids(each)


def _value(part: Part, tasks: Mapping[str, Task | None], codecs: Mapping[str, Codec]) -> Any:
    if isinstance(part, One):
        return result_of(tasks[part.task_id], part.task_id, part.hint, codecs)
    values = [_value(each, tasks, codecs) for each in part.parts]
    return tuple(values) if part.is_tuple else values
