"""Queued tasks that no worker takes: a forgotten worker, queue, type or capability, or a type whose
handlers hang."""

from __future__ import annotations

import msgspec

from fairlane.core.facts import Facts
from fairlane.core.held_back import held_back, takes
from fairlane.core.lanes import is_paused, serves
from fairlane.core.model import WorkerStatus
from fairlane.core.priority import MICROSECONDS

UNSERVED_SECONDS = 60.0
"""Tasks wait for so long before they count: workers may be about to start."""


class UnservedLane(msgspec.Struct, frozen=True):
    """Queued tasks of one queue, type and set of capabilities that no living worker takes."""

    queue: str
    type: str
    required_capabilities: tuple[str, ...]
    count: int
    oldest_age_seconds: float
    held_back: bool = False
    """Living workers serve them, but all of these hold the type back: its handlers hang."""


def unserved(facts: Facts, longer_than: float = UNSERVED_SECONDS) -> list[UnservedLane]:
    """Return the lanes whose oldest task has been ready for longer, and that no living worker
    takes; the oldest first. Paused ones wait for the operator instead."""
    depths: dict[int, int] = {}
    oldest: dict[int, int] = {}
    for stream in facts.streams:
        depths[stream.lane] = depths.get(stream.lane, 0) + stream.depth
        oldest[stream.lane] = min(stream.oldest, oldest.get(stream.lane, stream.oldest))
    before = facts.now - int(longer_than * MICROSECONDS)
    # Workers are many, and most of them alike.
    alive = {
        (worker.types, worker.queues, worker.capabilities, held_back(worker)): worker
        for worker in facts.workers
        if worker.status is not WorkerStatus.DEAD and not worker.lost
    }.values()
    found = [
        UnservedLane(
            lane.queue,
            lane.type,
            lane.capabilities,
            depths[lane.id],
            (facts.now - oldest[lane.id]) / MICROSECONDS,
            held_back=any(serves(worker, lane) for worker in alive),
        )
        for lane in facts.lanes.values()
        if oldest.get(lane.id, facts.now) < before
        and not is_paused(lane, facts.controls)
        and not any(takes(worker, lane) for worker in alive)
    ]
    return sorted(found, key=lambda lane: -lane.oldest_age_seconds)
