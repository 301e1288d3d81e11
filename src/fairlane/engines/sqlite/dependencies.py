"""Submissions that depend on other tasks: what each waits for, and which are doomed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core.dependencies import Dependency, dependency_on, parents_elsewhere
from fairlane.core.errors import UnknownDependency
from fairlane.core.flow import Flow
from fairlane.core.machine import DOOM
from fairlane.core.model import NewTask
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.moves import TaskRow, apply_move

SQL = statements(__package__, "dependencies")


def dependencies_of(tasks: Sequence[NewTask]) -> Flow[Dependencies]:
    """For tasks that are about to be stored, some of which have parents."""
    wanted = parents_elsewhere(tasks)
    rows = yield Execute(SQL["parents"], (json.dumps(wanted),))
    states = {task_id: State.of(state) for task_id, state in rows}
    if len(states) < len(wanted):
        raise UnknownDependency
    return Dependencies(states)


class Dependencies:
    """Gathers bonds as tasks are gone through in the order of their batch."""

    def __init__(self, states: dict[str, State]) -> None:
        self._states = states
        self._bonds: list[tuple[str, str, bool]] = []
        self._dependents: list[tuple[str, str]] = []
        self.doomed: dict[str, TaskRow] = {}

    def add(self, task: NewTask, row: TaskRow) -> bool:
        """Add a task; return whether it waits for parents or is doomed."""
        tolerant = task.spec.tolerant
        bonds = {
            parent: dependency_on(self._state(parent), tolerant=tolerant)
            for parent in task.depends_on
        }
        if Dependency.BROKEN in bonds.values():
            self.doomed[task.task_id] = row
            return True
        self._dependents += [(parent, task.task_id) for parent in bonds]
        pending = [parent for parent, kind in bonds.items() if kind is Dependency.PENDING]
        self._bonds += [(parent, task.task_id, tolerant) for parent in pending]
        return bool(pending)

    def _state(self, parent: str) -> State:
        # One of the same batch has only just come, so what matters is whether it is doomed.
        of_batch = State.CANCELLED if parent in self.doomed else State.QUEUED
        return self._states.get(parent, of_batch)

    def store(self, now: int, accounts: Accounts) -> Flow[None]:
        """Write the bonds and who depends on whom, and end what is doomed."""
        yield ExecuteMany(SQL["bond"], self._bonds)
        yield ExecuteMany(SQL["dependent"], self._dependents)
        for row in self.doomed.values():
            yield from apply_move(row, DOOM, now, accounts)
