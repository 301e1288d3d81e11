"""Where a task stands in the queue and how long it may have to wait: estimates from counters."""

from __future__ import annotations

import math

import msgspec

from fairlane.core.facts import Facts, sample_of
from fairlane.core.model import Task, microseconds_of
from fairlane.core.states import State
from fairlane.core.stats import MINUTE, older_than, since


class Position(msgspec.Struct, frozen=True):
    """`position` is 1 for the task that is next. `wait_seconds` is None while nothing completes."""

    position: int
    wait_seconds: float | None


def position_of(task: Task, facts: Facts) -> Position | None:
    """About how many tasks of its queue will be claimed before it; None when it is not queued."""
    if task.status is not State.QUEUED:
        return None
    ready_at = microseconds_of(task.ready_at)
    ahead = 0.0
    for stream in facts.streams:
        lane = facts.lanes.get(stream.lane)
        if lane is None or lane.queue != task.queue:
            continue
        if stream.level > task.effective_priority:
            ahead += stream.depth
        elif stream.level >= task.priority:
            ahead += older_than(stream, ready_at)
    return Position(1 + math.floor(ahead), _wait(ahead, facts))


def _wait(ahead: float, facts: Facts) -> float | None:
    gain = since(facts, sample_of(facts.tallies, facts.now), MINUTE)
    return ahead / (gain.completed / MINUTE) if gain.completed > 0 else None
