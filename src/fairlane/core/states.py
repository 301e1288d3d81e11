"""The states of a task, and the groups of them that rules are written about."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a task stands in its life. The value is the name users see."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    EXECUTING = "executing"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELLED = "cancelled"

    code: int
    """The small number that engines store instead of the name."""

    @classmethod
    def of(cls, code: int) -> State:
        """Return the state that an engine stored as `code`."""
        return _STATES[code]


# Stored in databases: append, never renumber. 0 stands for "no task" (before submission, after
# deletion) where transitions are counted.
NOWHERE = 0
_STATES = dict(enumerate(State, start=NOWHERE + 1))
for _code, _state in _STATES.items():
    _state.code = _code

WAITING = frozenset({State.SCHEDULED, State.QUEUED, State.RETRYING})
"""Not held by a worker, and will run by itself when its time comes."""

LIVE = WAITING | {State.EXECUTING}
"""Still has something to do."""

TERMINAL = frozenset(State) - LIVE
"""Ended: nothing but an operator's replay or deletion changes it."""
