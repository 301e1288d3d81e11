"""What there is to do in a queue, for whoever decides how many workers there are."""

from __future__ import annotations

import msgspec

from fairlane.core.breakdown import QueueFacts
from fairlane.core.states import State


class Backlog(msgspec.Struct, frozen=True):
    """`backlog` counts what waits to run now and what runs, so that nobody takes a worker away
    that is busy; of a queue that is paused only the latter."""

    queue: str
    backlog: int
    queued: int
    executing: int
    paused: bool


def backlog_of(facts: QueueFacts, *, paused: bool) -> Backlog:
    """A queue that may also be paused because everything is."""
    queued, executing = facts.by_status[State.QUEUED], facts.by_status[State.EXECUTING]
    return Backlog(facts.queue, executing + (0 if paused else queued), queued, executing, paused)
