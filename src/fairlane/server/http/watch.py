"""What the connections of a server share: limits, deadlines, and a log that cannot be flooded."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from heapq import nsmallest
from operator import attrgetter
from typing import Any, Final, Protocol

from fairlane.server.errors import HttpError
from fairlane.server.http.limits import ConnectionLimits

logger = logging.getLogger("fairlane.server")

SWEEP_SECONDS: Final = 0.5
LINES_A_SWEEP: Final = 5

NEVER: Final = float("inf")

CLOSED_SHARE: Final = 64
"""Where there are too many connections, one in this many is closed at once: to find those that have
been idle for longest, all are looked at."""


class Watched(Protocol):
    """A connection with deadlines, in the time of its loop."""

    address: str | None
    """By what it is counted (see `counted_as`); None for a socket in the file system."""
    receipt_due: float
    """When the request must have arrived."""
    reading_due: float
    """When the client must have started to read the response."""

    @property
    def idle(self) -> bool:
        """No request has begun, and no response is due."""

    def expire(self, now: float) -> None:
        """Handle a deadline that has passed."""

    def close_idle(self) -> None:
        """Close, because others need the room."""


class ConnectionWatch:
    """Checks all connections twice a second, which is cheaper than a timer for every request."""

    def __init__(self, limits: ConnectionLimits, state: dict[str, Any]) -> None:
        self.limits = limits
        self.state = state
        """The state of the application's lifespan, which its requests see."""
        self.connections: set[Watched] = set()
        self._open = 0
        self._addresses: Counter[str | None] = Counter()
        """Connections that count, in all and by where they come from, WebSockets included."""
        self._refused = 0
        """Connections that do not count: they are refused, and stay for a moment."""
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

    def enter(self, address: str | None) -> bool:
        """Return whether there is room for a new connection, which then counts. Idle ones are
        closed to make room: those nearest to their deadline first."""
        limits = self.limits
        if address is not None and self._addresses[address] >= limits.from_one_address():
            room = self._close_idle([each for each in self.connections if each.address == address])
        else:
            room = self._open < limits.connections or self._close_idle(self.connections)
        if room:
            self._open += 1
            self._addresses[address] += 1
        return room

    def leave(self, address: str | None) -> None:
        """Count a connection no more."""
        self._open -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def enter_refused(self) -> bool:
        """Return whether a connection without room may stay until its client has read so."""
        may_stay = self._refused < self.limits.refusals()
        self._refused += may_stay
        return may_stay

    def leave_refused(self) -> None:
        """Forget a refused connection that has closed."""
        self._refused -= 1

    def _close_idle(self, connections: Collection[Watched]) -> bool:
        most = max(1, len(connections) // CLOSED_SHARE)
        idle = nsmallest(
            most, (each for each in connections if each.idle), attrgetter("receipt_due")
        )
        for each in idle:
            each.close_idle()
        return bool(idle)

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
