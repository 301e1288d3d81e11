"""Results of changes to tasks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core.model import Cancelled, Deleted, Replayed
from fairlane.core.states import State

Change = Cancelled | Replayed | Deleted


class CancelledView(msgspec.Struct, frozen=True):
    """A task that was cancelled. If it was executing, its worker is asked to stop."""

    task_id: str
    status: State
    previous_status: State | None
    was_executing: bool
    worker_notified: bool
    worker_id: str | None
    """The worker that ran it."""


class ReplayedView(msgspec.Struct, frozen=True):
    """A task that was replayed."""

    task_id: str
    status: State
    previous_status: State


class ChangeView(msgspec.Struct, frozen=True):
    """The result for one task. `previous_status` is null if there is no such task. `worker_id`, the
    worker that ran it, is set if it was executing."""

    task_id: str
    applied: bool
    previous_status: State | None
    worker_id: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, answer: Change) -> ChangeView:
        worker_id = answer.worker_id if isinstance(answer, Cancelled) else None
        return cls(answer.task_id, answer.applied, answer.state, worker_id or msgspec.UNSET)


class SweptView(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks matched, and how many of them were changed; the state of the others did not
    allow it. `results`: one for each task, if the tasks were named by id.

    With a `next_cursor` there is more to do: send the same request again with it.
    """

    matched: int
    applied: int
    next_cursor: str | None = None
    results: tuple[ChangeView, ...] | msgspec.UnsetType = msgspec.UNSET


def cancelled_of(answer: Cancelled) -> CancelledView:
    """Return a cancellation that was applied."""
    executing = answer.state is State.EXECUTING
    return CancelledView(
        task_id=answer.task_id,
        status=State.CANCELLED,
        previous_status=answer.state,
        was_executing=executing,
        worker_notified=executing,
        worker_id=answer.worker_id,
    )


def changes_of(answers: Sequence[Change]) -> SweptView:
    """Return the results for tasks that were named by id."""
    return SweptView(
        matched=len(answers),
        applied=sum(each.applied for each in answers),
        results=tuple(map(ChangeView.of, answers)),
    )
