"""Who writes the log for those who have better things to do: a thread, while there is something to
write. Most of what a line takes is the operating system's part of it, or fits into the pauses that
a worker has while its store works."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("fairlane.telemetry")

MOST: Final = 100
"""Jobs that may wait: a log that cannot keep up holds up those who fill it, as any log does."""
IDLE_SECONDS: Final = 0.2


class Scribe:
    """Does jobs one after the other, in the order in which they were handed in."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], object]] = deque()
        self._there = False
        """A thread takes the jobs."""
        self._writing = False

    def hand(self, job: Callable[[], object]) -> None:
        """Have something done soon."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._jobs) < MOST)
            self._jobs.append(job)
            if not self._there:
                self._there = True
                # Not a daemon: a program that ends waits for what was handed in.
                threading.Thread(target=self._work, name="fairlane-log").start()
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait until everything is done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._writing)

    def _work(self) -> None:
        while self._next():
            try:
                self._jobs[0]()
            except Exception:
                logger.exception("Something could not be logged")
            with self._changed:
                self._jobs.popleft()
                self._writing = False
                self._changed.notify_all()

    def _next(self) -> bool:
        """Whether there is another job; False: the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs, IDLE_SECONDS)
            self._there = self._writing = bool(self._jobs)
            return self._there
