"""Fences that outlive their task.

A run can go on after its task was deleted, and a worker repeats a report whose answer got lost. If
a task is then submitted under the same id, and the same worker claims it, the old report must not
count for the new run. So a deleted task leaves its last attempt behind for a while, and attempts of
a task that is submitted under its id go on from there.
"""

from __future__ import annotations

from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State

FENCE = "fence"
"""The kind of the documents that hold them, by task id."""
FENCE_MICROSECONDS = 24 * 3600 * MICROSECONDS
"""How long one is kept, and how recent the end of a task must be for it."""


def leaves_fence(state: State, attempt: int, ended_at: int, now: int, *, pruned: bool) -> bool:
    """Return whether a task that is deleted leaves its last attempt behind.

    Those whose retention is over and which completed do not: there are many of them, and the run
    that completed a task has reported.
    """
    if pruned and state is State.COMPLETED:
        return False
    return attempt > 0 and ended_at > now - FENCE_MICROSECONDS
