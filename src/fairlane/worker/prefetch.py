"""How much a worker holds beyond what it runs.

About what it finished in the last 50 ms: a worker with long tasks takes none that another could
run at once, one with tiny tasks claims hundreds at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlane.core import limits

WINDOW = 0.05
_SLICES = 5


class Prefetch:
    """Counts what finishes, in slices of ten milliseconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts = [0] * _SLICES
        self._slice = 0

    def finished(self, count: int) -> None:
        """So many tasks ended just now."""
        self._counts[self._turn()] += count

    def ahead(self, held: int) -> int:
        """How many more may be claimed by a worker that holds so many unstarted ones."""
        self._turn()
        return max(0, min(sum(self._counts), limits.BATCH) - held)

    def _turn(self) -> int:
        now = int(self._clock() / (WINDOW / _SLICES))
        passed = min(now - self._slice, _SLICES)
        for step in range(passed):
            self._counts[(self._slice + 1 + step) % _SLICES] = 0
        self._slice = now
        return now % _SLICES
