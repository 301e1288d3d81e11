"""Admission control: refusing some submissions, so that the rest get served.

The deeper the queue, the higher the priority that is accepted. `client_limits` limits what each
client submits. What a client does at this process alone (sign in, send messages) is limited here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Final

from fairlane.core.limits import CLIENTS
from fairlane.core.model import NewTask
from fairlane.core.priority import Band, band_of
from fairlane.server.config import Admission
from fairlane.server.errors import TooManyRequests

RETRY_SECONDS: Final = 5
"""After this time the queue may be shorter."""


class Overloaded(TooManyRequests):
    """Too many tasks are waiting: submissions of lower priority are refused."""

    code = "overloaded"


class AdmissionControl:
    """Accepts submissions by their priority, or refuses them with the time to retry."""

    def __init__(self, terms: Admission) -> None:
        self._grades = tuple(
            (threshold, refused) for threshold, refused in terms.grades() if threshold is not None
        )
        self._lowest = min((threshold for threshold, _ in self._grades), default=math.inf)

    def check(self, tasks: Iterable[NewTask], depth: int) -> None:
        """Raise Overloaded unless these tasks may be submitted. `depth`: waiting tasks."""
        if depth >= self._lowest:
            self._check_depth(depth, {band_of(task.level) for task in tasks})

    def _check_depth(self, depth: int, bands: set[Band]) -> None:
        for threshold, refused in self._grades:
            if depth >= threshold and bands & refused:
                shown = " and ".join(sorted(bands & refused))
                raise Overloaded(
                    f"{depth:,} tasks are waiting: submissions of priority {shown} are refused "
                    f"from {threshold:,} on.",
                    details={"depth": depth, "threshold": threshold},
                    headers=_retry_after(RETRY_SECONDS),
                )


class RateWindows:
    """Counts what each client did within the last `seconds`.

    Each client has two counts, for the current interval and for the one before. Of the earlier one
    that part counts which lies within the window.
    """

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._counts: dict[str, tuple[int, int, int]] = {}

    def take(self, client: str, amount: int) -> None:
        """Count an amount for a client. Raises TooManyRequests, and then counts nothing."""
        index, passed, current, before = self._standing(client)
        if current + before * (1 - passed / self._seconds) + amount > self._most:
            raise TooManyRequests(
                f"At most {self._most:,} in {self._seconds:,.0f} s are accepted from one client.",
                headers=_retry_after(math.ceil(self._wait(passed, current, before, amount))),
            )
        # Move the client to the end: the one that was idle for longest is dropped first.
        self._counts.pop(client, None)
        self._counts[client] = (index, current + amount, before)
        if len(self._counts) > CLIENTS:
            del self._counts[next(iter(self._counts))]

    def _standing(self, client: str) -> tuple[int, float, int, int]:
        """Return the current interval's number, the seconds passed in it, the count in it, and the
        count in the one before."""
        interval, passed = divmod(self._clock(), self._seconds)
        index = int(interval)
        begun, current, before = self._counts.get(client, (index, 0, 0))
        if begun == index:
            return index, passed, current, before
        return index, passed, 0, current if begun == index - 1 else 0

    def _wait(self, passed: float, current: int, before: int, amount: int) -> float:
        """Return the seconds until there is room for this amount, if nothing else is counted."""
        room = max(0, self._most - amount)
        if current <= room:  # once enough of the earlier count has left the window
            return self._seconds * (1 - (room - current) / before) - passed
        return self._seconds * (2 - room / current) - passed


def _retry_after(seconds: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"retry-after", str(max(1, seconds)).encode()),)
