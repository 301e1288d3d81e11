"""What the connections of a server share: limits, deadlines, and a log that cannot be flooded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from fairlane.server.errors import HttpError
from fairlane.server.http.limits import ConnectionLimits

logger = logging.getLogger("fairlane.server")

SWEEP_SECONDS: Final = 0.5
LINES_A_SWEEP: Final = 5

NEVER: Final = float("inf")


class Watched(Protocol):
    """A connection with deadlines, in the time of its loop."""

    receipt_due: float
    """When the request must have arrived."""
    reading_due: float
    """When the client must have started to read the response."""

    def expire(self, now: float) -> None:
        """Handle a deadline that has passed."""


class ConnectionWatch:
    """Checks all connections twice a second, which is cheaper than a timer for every request."""

    def __init__(self, limits: ConnectionLimits, state: dict[str, Any]) -> None:
        self.limits = limits
        self.state = state
        """The state of the application's lifespan, which its requests see."""
        self.connections: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lines = 0

    def start(self) -> None:
        """Start checking."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)

    def stop(self) -> None:
        """Stop checking."""
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

    def log_refusal(self, fault: HttpError, client: tuple[str, int] | None) -> None:
        """Log a refused request; of many at once, only the first few."""
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
