"""Where a task stands in the queue and how long it may have to wait: estimates from counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

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
    if task.state is not State.QUEUED:
        return None
    ready_at = microseconds_of(task.ready_at)
    ahead = 0.0
    for stream in facts.streams:
        lane = facts.lanes.get(stream.lane)
        if lane is None or lane.queue != task.queue:
            continue
        if stream.level > task.effective_level:
            ahead += stream.depth
        elif stream.level >= task.level:
            ahead += older_than(stream, ready_at)
    return Position(1 + math.floor(ahead), _wait(ahead, facts))


def _wait(ahead: float, facts: Facts) -> float | None:
    completed = _completed(facts)
    return ahead / (completed / MINUTE) if completed > 0 else None


def _completed(facts: Facts) -> float:
    """Return tasks that completed within the last minute."""
    return since(facts, sample_of(facts.tallies, facts.now), MINUTE).completed


class Outlook(msgspec.Struct, frozen=True):
    """Queued tasks by queue and level, and their pace: what a submission is answered with."""

    depths: Mapping[str, Mapping[int, int]]
    depth: int
    """Queued tasks in all."""
    per_second: float
    """Tasks that completed lately."""

    def newcomer(self, queue: str, level: int) -> Position:
        """Return the position of a task that is queued now."""
        levels = self.depths.get(queue, {})
        ahead = sum(depth for each, depth in levels.items() if each >= level)
        return Position(1 + ahead, ahead / self.per_second if self.per_second else None)


def outlook_of(facts: Facts) -> Outlook:
    """Make an outlook from facts."""
    depths: dict[str, Counter[int]] = {}
    for stream in facts.streams:
        lane = facts.lanes.get(stream.lane)
        if lane is not None:
            depths.setdefault(lane.queue, Counter())[stream.level] += stream.depth
    depth = sum(stream.depth for stream in facts.streams)
    return Outlook(depths, depth, _completed(facts) / MINUTE)
