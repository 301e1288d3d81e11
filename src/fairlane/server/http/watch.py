"""What the connections of one server share: limits, deadlines, and a log that cannot be flooded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from fairlane.server.errors import Refused
from fairlane.server.http.limits import Limits

logger = logging.getLogger("fairlane.server")

SWEEP_SECONDS: Final = 0.5
LINES_A_SWEEP: Final = 5

NEVER: Final = float("inf")


class Watched(Protocol):
    """A connection with deadlines, in the time of its loop."""

    receipt_due: float
    """When what it waits for must have arrived."""
    reading_due: float
    """When the client must have begun to read what it was sent."""

    def expire(self, now: float) -> None:
        """A deadline has passed."""


class Watch:
    """Looks at all connections twice a second: cheaper than a timer for every request."""

    def __init__(self, limits: Limits, state: dict[str, Any]) -> None:
        self.limits = limits
        self.state = state
        """What the application's lifespan gave to its requests."""
        self.connections: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lines = 0

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)
        now = loop.time()
        for each in [
            each for each in self.connections if each.receipt_due < now or each.reading_due < now
        ]:
            each.expire(now)
        if self._lines > LINES_A_SWEEP:
            logger.warning("%d more requests were refused", self._lines - LINES_A_SWEEP)
        self._lines = 0

    def tell(self, fault: Refused, client: tuple[str, int] | None) -> None:
        """Log a refusal; of many at once, only the first."""
        self._lines += 1
        if self._lines <= LINES_A_SWEEP:
            where = client[0] if client else "a local client"
            logger.warning(
                "Refused a request from %s: %d %s: %s",
                where,
                fault.status,
                fault.code,
                fault.message,
            )
