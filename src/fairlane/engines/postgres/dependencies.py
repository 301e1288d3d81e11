"""The dependencies of a batch of tasks, on each other and on tasks in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlane.core.dependencies import Dependency, dependency_on, parents_elsewhere
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
    """The states of tasks in the store that new tasks depend on.

    `unfinished`: a parent is live again after an end, and not all dependents of that end are
    released. A new dependency would look like one of those.
    """

    states: dict[str, State]
    unfinished: bool


class Pair(NamedTuple):
    """A dependency. `fresh`: the parent's row is still to be marked as linked."""

    parent: str
    child: str
    tolerant: bool
    fresh: bool


class Dependencies(NamedTuple):
    """What the tasks of a batch depend on, and which of them are doomed.

    `dependents`: pairs of a parent, ended or not, and a child that is not doomed.
    """

    flags: dict[str, Flags]
    bonds: list[Pair]
    dependents: list[tuple[str, str]]
    doomed: set[str]

    def answer(self, accepted: Accepted) -> Accepted:
        """Return the reply for a task that was stored, cancelled if it is doomed."""
        if accepted.task_id not in self.doomed:
            return accepted
        return msgspec.structs.replace(accepted, state=State.CANCELLED)


def lock_parents(tasks: Sequence[NewTask]) -> Flow[Parents]:
    """Return the states of parents that are not among these tasks, and keep them from deletion."""
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
    dependents: list[tuple[str, str]] = []
    doomed: set[str] = set()
    states = dict(elsewhere)
    for task in tasks:
        found = {
            parent: _dependency_on(states, parent, task.spec.tolerant) for parent in task.depends_on
        }
        pending = [parent for parent, kind in found.items() if kind is Dependency.PENDING]
        states[task.task_id] = State.SCHEDULED  # or queued, which is the same to its children
        if Dependency.BROKEN in found.values():
            bound.add(task.task_id)
            doomed.add(task.task_id)
            states[task.task_id] = State.CANCELLED
            continue
        dependents += [(parent, task.task_id) for parent in found]
        if pending:
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
    return Dependencies(flags, bonds, dependents, doomed)


def _dependency_on(states: Mapping[str, State], parent: str, tolerant: bool) -> Dependency:
    if parent not in states:
        raise UnknownDependency
    return dependency_on(states[parent], tolerant=tolerant)


def store_dependencies(dependencies: Dependencies) -> Flow[bool]:
    """Store the dependencies of stored tasks, and cancel those that are doomed.

    Return whether to wake waiting workers.
    """
    if dependencies.dependents:
        parents, children = zip(*dependencies.dependents, strict=True)
        yield Query(SQL["add_dependents"], (array_of_ids(parents), array_of_ids(children)))
    if dependencies.bonds:
        parents, children, tolerant, fresh = zip(*dependencies.bonds, strict=True)
        yield Query(
            SQL["add_bonds"],
            (array_of_ids(parents), array_of_ids(children), list(tolerant), list(fresh)),
        )
    if not dependencies.doomed:
        return False
    doomed = yield from dependents.doom(dependencies.doomed)
    return (yield from dependents.release_dependents(ended_of(doomed)))
