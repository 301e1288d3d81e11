"""Where new tasks stand in the queue, from a view of the queues that is a moment old."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from fairlane.core.estimates import UNKNOWN, Outlook, Pace, Position, pace_of
from fairlane.core.facts import Sample
from fairlane.core.priority import MICROSECONDS
from fairlane.server.cached import Cached

SECONDS: Final = 0.5
"""How old the view of the queues may be."""
_POINTS: Final = 120
"""Samples that are kept to tell the pace."""
_RECALL_MICROSECONDS: Final = 60 * MICROSECONDS
"""After a minute without a look the store's samples are read."""


class Places:
    """The queues as they were up to half a second ago, and what this process submitted since.

    `look` reads the queues; `recall` reads the store's samples of the time before `now`
    (microseconds), for the pace of a time in which this process did not look.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[Outlook]],
        recall: Callable[[int], Awaitable[list[Sample]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._recall = recall
        self._clock = clock
        self._view = Cached(self._refresh, SECONDS, clock)
        self._points: list[Sample] = []
        self._last: Outlook | None = None
        self._seen_at = 0.0
        self._pace: Pace = UNKNOWN
        self._depths: dict[str, dict[int, int]] = {}
        self._departing: dict[str, float] = {}
        """Tasks that leave each queue in a second."""
        self._submitted = 0
        """Tasks that this process submitted since the view."""

    async def outlook(self) -> Outlook:
        """Return the queues as they were up to half a second ago."""
        return await self._view.get()

    @property
    def seen(self) -> Outlook | None:
        """The same, if it need not be read: without the cost of a coroutine."""
        return self._view.current

    def add(self, queue: str, level: int) -> Position:
        """Count a task that this process has just submitted, and return its position."""
        levels = self._depths.get(queue)
        if levels is None:
            levels = self._depths[queue] = {}
        ahead = 0
        for each, depth in levels.items():  # a loop, because every submission passes here
            if each >= level:
                ahead += depth
        levels[level] = levels.get(level, 0) + 1
        self._submitted += 1
        if ahead and queue in self._departing:
            departed = int(self._departing[queue] * (self._clock() - self._seen_at))
            ahead = max(0, ahead - departed)
        return self._pace.place(ahead)

    async def _refresh(self) -> Outlook:
        outlook = await self._look()
        self._points = await self._points_until(outlook.sample)
        self._pace = pace_of(self._points)
        self._departing = _departing(self._last, outlook)
        self._depths = {queue: dict(levels) for queue, levels in outlook.depths.items()}
        self._last, self._seen_at, self._submitted = outlook, self._clock(), 0
        return outlook

    async def _points_until(self, sample: Sample) -> list[Sample]:
        points = self._points
        if points and self._submitted:
            # What was submitted just after a view was work from then on.
            points[-1] = replace(points[-1], depths=(*points[-1].depths, self._submitted))
        if not points or sample.at - points[-1].at > _RECALL_MICROSECONDS:
            recalled = await self._recall(sample.at)
            points = sorted([*points, *recalled], key=lambda point: point.at)
        return [*points, sample][-_POINTS:]


def _departing(before: Outlook | None, after: Outlook) -> dict[str, float]:
    """Return how many tasks left each queue in a second between two views."""
    seconds = 0.0 if before is None else (after.sample.at - before.sample.at) / MICROSECONDS
    if before is None or seconds <= 0:
        return {}
    return {
        queue: max(0, started - before.started.get(queue, 0)) / seconds
        for queue, started in after.started.items()
    }
