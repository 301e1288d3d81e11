"""New lanes per client: nobody uses up the lanes that a store may have.

There is a limit for an hour, and one for all that a subject has made and that are still there.

A lane is new if it was not in the store at the last look, which is half a second old at most. So
two servers may both count a lane that both see for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fairlane.core.lanes import LaneKey
from fairlane.core.model import NewTask
from fairlane.server.client_limits import ClientLimits
from fairlane.server.errors import TooManyRequests

TakeShare = Callable[[str, Sequence[LaneKey]], Coroutine[Any, Any, None]]

_CLIENT = "lanes:"
"""Before the names of clients, which are counted apart from their submissions."""


class TooManyNewLanes(TooManyRequests):
    """Too many new combinations of queue, type and capabilities from one client: put what varies
    from task to task into the payload or the tags instead."""

    code = "too_many_new_lanes"


class NewLanes:
    """Admits new lanes of clients, or refuses them with the time to retry."""

    def __init__(self, clients: ClientLimits, take_share: TakeShare) -> None:
        self._clients = clients
        self._take_share = take_share
        self._known: set[LaneKey] = set()

    def see(self, known: set[LaneKey]) -> None:
        """Remember which lanes there are."""
        self._known = known

    def among(self, tasks: Sequence[NewTask]) -> set[LaneKey]:
        """Return the new lanes of these tasks."""
        return {(task.queue, task.type, task.capabilities) for task in tasks} - self._known

    async def take(self, subject: str | None, address: str, new: set[LaneKey]) -> None:
        """Count new lanes. Raises TooManyNewLanes, and then counts nothing, or TooManyLanes.
        `subject`: None if there are no tokens."""
        await self._clients.take(_CLIENT + (subject or address), len(new))
        if subject is not None:
            await self._take_share(subject, sorted(new))
        self._known |= new
