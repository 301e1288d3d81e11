"""Reruns: tasks of a workflow that have ended run again, each after its parents.

A rerun names the version of the task that it was planned for. If the task has moved since, the
rerun does nothing, so two plans for the same workflow cannot take effect one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from fairlane.core.dependencies import Dependency, dependency_on_all
from fairlane.core.machine import BIND_AGAIN, FROM_START, Move, allows
from fairlane.core.model import Task
from fairlane.core.states import State


class Rerun(msgspec.Struct, frozen=True):
    """A task that is to run again, as it was submitted."""

    task_id: str
    version: int
    parents: tuple[str, ...] = ()
    tolerant: bool = False

    @classmethod
    def of(cls, task: Task) -> Rerun:
        """Return the rerun of a task as it stands."""
        return cls(task.task_id, task.version, task.depends_on, task.tolerant)


def move_of(
    rerun: Rerun, state: State, version: int, parents: Iterable[State | None]
) -> Move | None:
    """Return the move that a rerun leads to. None: the task stays as it is.

    `state` and `version` are those of the task, `parents` the states of its parents (None: deleted)
    after the reruns before it in its batch.
    """
    if version != rerun.version or not allows(FROM_START.verb, state):
        return None
    match dependency_on_all(parents, tolerant=rerun.tolerant):
        case Dependency.BROKEN:
            return None
        case Dependency.PENDING:
            return BIND_AGAIN
        case Dependency.MET:
            return FROM_START
        case unknown:
            assert_never(unknown)
