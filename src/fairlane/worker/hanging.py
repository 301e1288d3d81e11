"""Handlers that hang: threads that nobody can end, and types that are held back for them.

A thread goes on after its run has timed out. A type whose runs do that one after the other would
take every slot of every worker in turn, and leave a thread behind each time. So a worker holds
such a type back, and tries a single task of it now and then. Its heartbeats say which types it
holds back (see `core/held_back.py`). What it knows outlives its sessions: the threads do, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from fairlane.telemetry.repeats import Repeats

logger = logging.getLogger("fairlane.worker")

HELD_FROM = 5
"""After this many runs that hang, and none of the same type that ends, a type is held back."""
WARNED_SECONDS = 60.0
"""How often a type is reported that leaves threads behind."""
PROBE_SECONDS = 60.0
"""How often a task of a type that is held back is tried."""


class Hanging:
    """Counts the threads that hang, by type, and decides which types are held back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._repeats: Repeats[str] = Repeats(most=1, seconds=WARNED_SECONDS, clock=clock)
        self._threads: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        """By type: how many runs have been abandoned since one has ended."""
        self._probe_at: dict[str, float] = {}
        """The types that are held back, and when the next task of each is tried."""
        self.threads = 0
        """How many threads still run a handler that nobody waits for."""

    def abandon(self, type: str) -> None:
        """Count a thread that nobody waits for any more."""
        with self._guard:
            for _ in self._repeats.take_ended():
                pass  # the next warning has the number of threads
            self.threads += 1
            self._threads[type] += 1
            self._in_a_row[type] += 1
            if self._repeats.passes(type):
                logger.warning(
                    "%s has left a thread behind (%d now): its run was stopped, but nothing ends "
                    "a thread except its own return or the end of the process. Give what the "
                    'handler calls a time limit, or the task isolation="process".',
                    type,
                    self._threads[type],
                )
            hangs = self._in_a_row[type] >= HELD_FROM and self._threads[type] >= HELD_FROM
            if hangs and type not in self._probe_at:
                self._probe_at[type] = self._clock() + PROBE_SECONDS
                logger.warning(
                    "%s is held back: %d of its runs hang. This worker tries one task of it every "
                    "%g seconds until one ends.",
                    type,
                    self._threads[type],
                    PROBE_SECONDS,
                )

    def finish(self, type: str) -> None:
        """Count an abandoned thread that has ended after all."""
        with self._guard:
            self.threads -= 1
            self._threads[type] -= 1
            if self._threads[type] < HELD_FROM:
                self._resume(type)

    def succeed(self, type: str) -> None:
        """Count a run that has ended in time."""
        if self._in_a_row:  # rarely: this is the hot path
            with self._guard:
                del self._in_a_row[type]
                self._resume(type)

    @property
    def held(self) -> frozenset[str]:
        """The types that are held back."""
        return frozenset(self._probe_at) if self._probe_at else frozenset()

    def probe(self) -> str | None:
        """Return a type that is held back and of which a task is to be tried now, if any."""
        with self._guard:
            now = self._clock()
            for type, due in self._probe_at.items():
                if now >= due:
                    self._probe_at[type] = now + PROBE_SECONDS
                    return type
            return None

    def _resume(self, type: str) -> None:
        if self._probe_at.pop(type, None) is not None:
            logger.warning("%s is no longer held back", type)
