"""Tasks that wait for other tasks.

A task with `depends_on` is scheduled until all of its parents have ended. If a parent does not
complete, the task is cancelled ("doomed"), unless its policy says otherwise. The operation that
ends a parent releases its dependents, up to a batch; the next claims release the others. The first
end of a parent counts: a replay changes nothing for dependents that were released before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, InvalidDependencies
from fairlane.core.ids import checked as checked_id
from fairlane.core.model import NewTask
from fairlane.core.states import LIVE, State
from fairlane.core.text import shown


class OnParentFailure(StrEnum):
    """What happens to a task if one of its parents fails, dies or is cancelled."""

    CANCEL = "cancel"
    CONTINUE = "continue"


class Dependency(Enum):
    """What a parent's state means for a task that depends on it."""

    PENDING = "pending"
    MET = "met"
    BROKEN = "broken"


def dependency_on(parent: State, *, tolerant: bool) -> Dependency:
    """Return what a parent's state means for a task that depends on it.

    `tolerant`: the task runs however the parent ends.
    """
    if parent in LIVE:
        return Dependency.PENDING
    return Dependency.MET if tolerant or parent is State.COMPLETED else Dependency.BROKEN


def dependency_on_all(parents: Iterable[State | None], *, tolerant: bool) -> Dependency:
    """Return what the states of its parents mean for a task together.

    None: the parent has been deleted. Nobody knows whether it completed, so it counts as one that
    did not.
    """
    found = {dependency_on(state or State.FAILED, tolerant=tolerant) for state in parents}
    for kind in (Dependency.BROKEN, Dependency.PENDING):
        if kind in found:
            return kind
    return Dependency.MET


def checked_parents(depends_on: object) -> tuple[str, ...]:
    """Return the ids of parents, each once, in the order they were given."""
    if depends_on is None or depends_on == ():
        return ()
    if isinstance(depends_on, str) or not isinstance(depends_on, Iterable):
        raise InvalidDependencies(f"depends_on is a list of task ids. Got {shown(depends_on)}.")
    parents = tuple(dict.fromkeys(checked_id(parent) for parent in depends_on))
    if len(parents) > limits.DEPENDENCIES:
        raise InvalidDependencies(
            f"A task may depend on at most {limits.DEPENDENCIES} others, not {len(parents):,}: "
            "gather them in steps."
        )
    return parents


def checked_policy(policy: object) -> OnParentFailure:
    """Return what a caller means by `on_parent_failure`."""
    if policy == OnParentFailure.CANCEL:  # nearly always
        return OnParentFailure.CANCEL
    if policy == OnParentFailure.CONTINUE:
        return OnParentFailure.CONTINUE
    raise InvalidDependencies(f"on_parent_failure is cancel or continue. Got {shown(policy)}.")


def check_batch(tasks: Sequence[NewTask]) -> None:
    """Raise BatchTooLarge unless so many tasks may be stored at once."""
    if len(tasks) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are stored at once, not {len(tasks):,}."
        )
    parents = sum(len(task.spec.depends_on) for task in tasks)
    if parents > limits.BATCH_PARENTS:
        raise BatchTooLarge(
            f"Tasks that are stored at once have at most {limits.BATCH_PARENTS:,} parents "
            f"together, not {parents:,}: gather results in steps, or send smaller batches."
        )


def parents_elsewhere(tasks: Sequence[NewTask]) -> list[str]:
    """Return the parents of a batch that must be in the store already, each once.

    A parent in the same batch comes before its children, so there are no circles.
    """
    earlier: set[str] = set()
    elsewhere: dict[str, None] = {}
    for task in tasks:
        for parent in task.depends_on:
            if parent not in earlier:
                elsewhere[parent] = None
        earlier.add(task.task_id)
    return list(elsewhere)
