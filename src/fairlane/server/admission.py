"""Admission: whom to refuse so that the rest get served.

By grade: the deeper the queue, the more important a submission has to be. By client: a sliding
window, counted by this server process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Final

from fairlane.core.model import NewTask
from fairlane.core.priority import Band, band_of
from fairlane.server.config import Admission
from fairlane.server.errors import TooMany
from fairlane.server.identity import Identity

RETRY_SECONDS: Final = 5
"""When a queue may have become shorter."""
CLIENTS: Final = 10_000
"""Clients that are remembered at once."""


class Overload(TooMany):
    """Too many tasks are waiting for less important ones to be accepted."""

    code = "overloaded"


class Door:
    """Lets submissions in, or asks to come again later."""

    def __init__(self, terms: Admission, clock: Callable[[], float] = time.monotonic) -> None:
        self._grades = tuple(
            (threshold, refused) for threshold, refused in terms.grades() if threshold is not None
        )
        self._lowest = min((threshold for threshold, _ in self._grades), default=math.inf)
        limits = [(terms.per_minute, 60.0), (terms.per_hour, 3600.0)]
        self._windows = [
            Windows(most, seconds, clock) for most, seconds in limits if most is not None
        ]

    def admit(self, identity: Identity, address: str, tasks: Iterable[NewTask], depth: int) -> None:
        """Raise TooMany unless these may be submitted while so many tasks are queued."""
        if identity.exempt:
            return
        tasks = tuple(tasks)
        if depth >= self._lowest:
            self._check_depth(depth, {band_of(task.level) for task in tasks})
        client = identity.token_id or address
        for window in self._windows:
            window.check(client, len(tasks))
        for window in self._windows:
            window.count(client, len(tasks))

    def _check_depth(self, depth: int, bands: set[Band]) -> None:
        for threshold, refused in self._grades:
            if depth >= threshold and bands & refused:
                shown = " and ".join(sorted(bands & refused))
                raise Overload(
                    f"{depth:,} tasks are waiting: submissions of priority {shown} are refused "
                    f"from {threshold:,} on.",
                    details={"depth": depth, "threshold": threshold},
                    headers=_retry_after(RETRY_SECONDS),
                )


class Windows:
    """How much each client did within the last `seconds`.

    Two counts a client: what it did in this stretch of time and in the one before, of which as much
    counts as the window still reaches into it.
    """

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._counts: dict[str, tuple[int, int, int]] = {}

    def take(self, client: str, amount: int) -> None:
        """Count so much for a client. Raises TooMany, and then counts nothing."""
        self.check(client, amount)
        self.count(client, amount)

    def check(self, client: str, amount: int) -> None:
        """Raise TooMany unless a client may do so much more now."""
        _, passed, current, before = self._standing(client)
        if current + before * (1 - passed / self._seconds) + amount > self._most:
            raise TooMany(
                f"At most {self._most:,} in {self._seconds:,.0f} s are accepted from one client.",
                headers=_retry_after(math.ceil(self._wait(passed, current, before, amount))),
            )

    def count(self, client: str, amount: int) -> None:
        """A client has done so much more."""
        index, _, current, before = self._standing(client)
        # Put back at the end: whoever did nothing for longest is forgotten first.
        self._counts.pop(client, None)
        self._counts[client] = (index, current + amount, before)
        if len(self._counts) > CLIENTS:
            del self._counts[next(iter(self._counts))]

    def _standing(self, client: str) -> tuple[int, float, int, int]:
        """Which stretch this is, how much of it has passed, what was done in it and before it."""
        stretch, passed = divmod(self._clock(), self._seconds)
        index = int(stretch)
        begun, current, before = self._counts.get(client, (index, 0, 0))
        if begun == index:
            return index, passed, current, before
        return index, passed, 0, current if begun == index - 1 else 0

    def _wait(self, passed: float, current: int, before: int, amount: int) -> float:
        """Seconds until there is room for so much, if nothing is done in the meantime."""
        room = max(0, self._most - amount)
        if current <= room:  # as soon as enough of what was before has left the window
            return self._seconds * (1 - (room - current) / before) - passed
        return self._seconds * (2 - room / current) - passed


def _retry_after(seconds: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"retry-after", str(max(1, seconds)).encode()),)
