"""How long ended tasks, dead workers and journal entries are kept.

A task is kept beyond that while a task that depends on it has not ended, because that may take its
result. Engines note who depends on whom for as long as the parent is there, and compare it with
the states of the dependents when they prune. So the end of a task costs nothing more.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidRetention
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.text import shown

_DAY = 86_400.0

LOOKED_AT = 1_000
"""How many dependents of a task prune looks at. If all of them have ended and there are more, they
no longer count, and the task is kept until a later prune has looked at the others."""


class Retention(msgspec.Struct, frozen=True):
    """For how many seconds things are kept: tasks after their end, workers after their death,
    entries of the journal after what they tell of."""

    completed: float = _DAY
    failed: float = 7 * _DAY
    cancelled: float = 7 * _DAY
    dead_letter: float = 30 * _DAY
    workers: float = _DAY
    journal: float = _DAY

    def deadlines(self, now: int) -> dict[State, int]:
        """For each state that is an end: what ended by then may go."""
        kept = {
            State.COMPLETED: self.completed,
            State.FAILED: self.failed,
            State.CANCELLED: self.cancelled,
            State.DEAD_LETTER: self.dead_letter,
        }
        return {state: past(seconds, now) for state, seconds in kept.items()}


DEFAULT = Retention()


class Pruned(msgspec.Struct, frozen=True):
    """How many tasks were deleted; `more`: there may be more to do at once."""

    tasks: int
    more: bool


Key = TypeVar("Key")


class Sweep(Generic[Key]):
    """Where prune goes on among the tasks whose retention is over, in each state.

    It passes those that must be kept, and begins again after the last one. So many of them do not
    keep it from the others. `least` is a key below those of all tasks that ended at one time.
    """

    def __init__(self, least: Key) -> None:
        self._start = (0, least)
        self._reached: dict[State, tuple[int, Key]] = {}

    def after(self, state: State) -> tuple[int, Key]:
        """Return the time and the key of the task after which prune goes on."""
        return self._reached.get(state, self._start)

    def reach(self, state: State, last: tuple[int, Key] | None) -> None:
        """Note the last task that was looked at; None if there was none after those."""
        if last is None:
            self._reached.pop(state, None)
        else:
            self._reached[state] = last


def past(seconds: float, now: int) -> int:
    """Return the time `seconds` before `now`."""
    return now - int(seconds * MICROSECONDS)


def checked(retention: Retention, least: float = 0.0) -> Retention:
    """Return the retention. Raises InvalidRetention if a number is out of range.

    As a setting of a store it is at least 1 second: with 0, results would be deleted that nobody
    has read, and a typing error costs everything that has ended.
    """
    for field in retention.__struct_fields__:
        seconds = getattr(retention, field)
        if not (
            isinstance(seconds, int | float)
            and not isinstance(seconds, bool)
            and least <= seconds <= limits.RETENTION_SECONDS
        ):
            raise InvalidRetention(
                f"How long to keep what is {field} is a number of seconds from {least:g} to "
                f"{limits.RETENTION_SECONDS:,.0f}. Got {shown(seconds)}."
            )
    return retention
