"""Lines in the log for programs that wait for a task that nobody runs.

Such a program looks as if it hangs, mostly because a worker was forgotten. After a few seconds the
log says what `why` knows. A task that is in line, limited or due later waits as it should, so
nothing is logged about it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from fairlane.core.why import HELD_BACK, NO_WORKER, PAUSED, Reason
from fairlane.telemetry.repeats import Repeats

logger: Final = logging.getLogger("fairlane.results")

NOTE_SECONDS = 5.0
"""How long a result is waited for before the log says why it does not come, and how often that is
checked."""
REPEAT_SECONDS: Final = 60.0
"""The same reason is logged once in this time."""
_LOGGED: Final = frozenset({HELD_BACK, NO_WORKER, PAUSED})
"""Reasons that do not go away by themselves."""


class WaitNotes:
    """Chooses the tasks to ask about, one at a time, and logs why they wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_look = float("-inf")
        self._seen: set[str] = set()
        """The tasks that were waited for at the last look."""
        self._asked: set[str] = set()
        self._repeats: Repeats[Reason] = Repeats(most=1, seconds=REPEAT_SECONDS, clock=clock)

    def choose(self, waiting: Collection[str]) -> str | None:
        """Return a task that has been waited for since the last look, or None if there is none, or
        it is too early to look again. Each task has its turn."""
        now = self._clock()
        if now < self._next_look:
            return None
        self._next_look = now + NOTE_SECONDS
        long = [task_id for task_id in waiting if task_id in self._seen]
        self._seen = set(waiting)
        self._asked.intersection_update(long)
        if len(self._asked) == len(long):
            self._asked.clear()
        chosen = next((task_id for task_id in long if task_id not in self._asked), None)
        if chosen is not None:
            self._asked.add(chosen)
        return chosen

    def log(self, task_id: str, reasons: Sequence[Reason] | None) -> None:
        """Log the decisive reason, if somebody has to do something about it."""
        decisive = next(iter(reasons or ()), None)
        for _ in self._repeats.take_ended():
            pass  # other tasks that wait for the same reason are not worth a line
        if decisive is not None and decisive.code in _LOGGED and self._repeats.passes(decisive):
            logger.warning("The result of task %s does not come. %s", task_id, decisive.message)
