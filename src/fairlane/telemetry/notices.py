"""Log lines that would repeat for every task, said once in a while instead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SECONDS = 600.0
"""How long a line is not repeated."""
_MOST = 100
"""How many different lines are remembered."""


class Notices:
    """Logs each line at most once in ten minutes, and then says how often it was left out."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._known: dict[str, tuple[float, int]] = {}
        """When a line was last logged, and how often it was left out since."""

    def error(self, line: str) -> None:
        """Log an error, unless the same was logged a short while ago."""
        now = self._clock()
        said, left_out = self._known.get(line, (-SECONDS, 0))
        if now - said < SECONDS:
            self._known[line] = said, left_out + 1
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[line] = now, 0
        more = (
            f" This happened {left_out:,} more times since it was last logged." if left_out else ""
        )
        self._logger.error("%s%s", line, more)
