"""What the tasks of a batch depend on, within the batch and in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlane.core.dependencies import Bond, bond, parents_elsewhere
from fairlane.core.errors import UnknownDependency
from fairlane.core.flow import Flow
from fairlane.core.model import Accepted, NewTask
from fairlane.core.states import State
from fairlane.engines.postgres import dependents
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.moves import ended_of
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load
from fairlane.engines.postgres.submit_batch import Flags

SQL = load("dependencies")


class Parents(NamedTuple):
    """How tasks in the store stand that others are to depend on.

    `unfinished`: one of them ended before and is live again, and what waited for its first end has
    not all been seen to. A new bond would be taken for one of those.
    """

    states: dict[str, State]
    unfinished: bool


class Pair(NamedTuple):
    """A bond. `fresh`: its parent's row has yet to be marked."""

    parent: str
    child: str
    tolerant: bool
    fresh: bool


class Dependencies(NamedTuple):
    """What the tasks of a batch depend on, and which of them are doomed."""

    flags: dict[str, Flags]
    bonds: list[Pair]
    doomed: set[str]

    def answer(self, accepted: Accepted) -> Accepted:
        """The answer to one of them that was stored."""
        if accepted.task_id not in self.doomed:
            return accepted
        return msgspec.structs.replace(accepted, state=State.CANCELLED)


def parents_of(tasks: Sequence[NewTask]) -> Flow[Parents]:
    """How the parents stand that are not among these tasks; none is deleted from now on."""
    ids = parents_elsewhere(tasks)
    if not ids:
        return Parents({}, unfinished=False)
    yield Query(SQL["lock_parents"], (array_of_ids(ids),))
    rows = yield Query(SQL["parents"], (array_of_ids(ids),))
    states = {task_id: State.of(state) for task_id, state, _ in rows}
    return Parents(states, unfinished=any(unfinished for *_, unfinished in rows))


def dependencies_of(tasks: Sequence[NewTask], elsewhere: Mapping[str, State]) -> Dependencies:
    """Return what these tasks depend on. Raises UnknownDependency."""
    bound: set[str] = set()
    linked = {task.task_id for task in tasks if task.unique is not None}
    bonds: list[Pair] = []
    doomed: set[str] = set()
    states = dict(elsewhere)
    for task in tasks:
        found = {parent: _bond(states, parent, task.spec.tolerant) for parent in task.depends_on}
        pending = [parent for parent, kind in found.items() if kind is Bond.PENDING]
        states[task.task_id] = State.SCHEDULED  # or queued, which is the same to its children
        if Bond.BROKEN in found.values():
            bound.add(task.task_id)
            doomed.add(task.task_id)
            states[task.task_id] = State.CANCELLED
        elif pending:
            bound.add(task.task_id)
            linked.update(pending)
            bonds += [
                Pair(parent, task.task_id, task.spec.tolerant, parent in elsewhere)
                for parent in pending
            ]
    flags = {
        task.task_id: Flags(task.task_id in bound, task.task_id in linked)
        for task in tasks
        if task.task_id in bound or task.task_id in linked
    }
    return Dependencies(flags, bonds, doomed)


def _bond(states: Mapping[str, State], parent: str, tolerant: bool) -> Bond:
    if parent not in states:
        raise UnknownDependency
    return bond(states[parent], tolerant=tolerant)


def store_dependencies(dependencies: Dependencies) -> Flow[bool]:
    """Store the bonds of tasks that are stored; end those that are doomed.

    True when claims have something new to look at.
    """
    if dependencies.bonds:
        parents, children, tolerant, fresh = zip(*dependencies.bonds, strict=True)
        yield Query(
            SQL["bind"],
            (array_of_ids(parents), array_of_ids(children), list(tolerant), list(fresh)),
        )
    if not dependencies.doomed:
        return False
    doomed = yield from dependents.doom(dependencies.doomed)
    return (yield from dependents.release_dependents(ended_of(doomed)))
