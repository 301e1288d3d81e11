"""Where a task stands in the queue and how long it may have to wait: estimates from counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from fairlane.core.facts import Facts, Sample, sample_of
from fairlane.core.model import Task, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.stats import older_than

PACE_SECONDS = 600.0
"""How far back samples are read to find the pace."""
_ENOUGH_SECONDS, _ENOUGH_COMPLETED = 10.0, 10
_LEAST_SECONDS = 1.0


class Position(msgspec.Struct, frozen=True):
    """`position` is 1 for the task that is next. `wait_seconds` is None if nobody can know."""

    position: int
    wait_seconds: float | None


class Pace(msgspec.Struct, frozen=True):
    """How fast tasks complete, as far as that is known."""

    per_second: float | None = None
    """While there is work."""
    completing: bool = False
    """Whether any task completed lately."""

    def place(self, ahead: float) -> Position:
        """Return the position behind this many tasks."""
        count = math.floor(ahead)
        if count == 0:
            return Position(1, 0.0 if self.completing else None)
        return Position(1 + count, count / self.per_second if self.per_second else None)


UNKNOWN = Pace()


def position_of(task: Task, facts: Facts, pace: Pace = UNKNOWN) -> Position | None:
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
    return pace.place(ahead)


def pace_of(points: Sequence[Sample]) -> Pace:
    """Return how many tasks complete in a second while there is work, as far as samples tell.

    `points` are samples in the order of their times. Only the time between two of them counts at
    both of which tasks waited, and in which tasks ran: a queue that ran dry, or that is paused,
    says nothing about the pace. The latest seconds count: enough of them for a steady number.
    """
    seconds, completed = 0.0, 0
    for earlier, later in zip(reversed(points[:-1]), reversed(points[1:]), strict=True):
        if not _worked(earlier, later):
            continue
        seconds += (later.at - earlier.at) / MICROSECONDS
        completed += later.completed - earlier.completed
        if seconds >= _ENOUGH_SECONDS and completed >= _ENOUGH_COMPLETED:
            break
    known = completed > 0 and seconds >= _LEAST_SECONDS
    completing = len(points) > 1 and points[-1].completed > points[0].completed
    return Pace(completed / seconds if known else None, completing)


def _worked(earlier: Sample, later: Sample) -> bool:
    """Return whether there was work all the time between two samples, and workers did it."""
    if later.at <= earlier.at or not (any(earlier.depths) and any(later.depths)):
        return False
    return bool(earlier.executing or later.executing or later.started > earlier.started)


class Outlook(msgspec.Struct, frozen=True):
    """Queued tasks by queue and level: what a submission is judged by and answered with."""

    depths: Mapping[str, Mapping[int, int]]
    depth: int
    """Queued tasks in all."""
    waiting: int
    """Queued, scheduled and retrying tasks in all."""
    started: Mapping[str, int]
    """Runs that ever started, by queue."""
    sample: Sample


def outlook_of(facts: Facts) -> Outlook:
    """Make an outlook from facts."""
    depths: dict[str, Counter[int]] = {}
    for stream in facts.streams:
        lane = facts.lanes.get(stream.lane)
        if lane is not None:
            depths.setdefault(lane.queue, Counter())[stream.level] += stream.depth
    depth = sum(stream.depth for stream in facts.streams)
    waiting = depth
    started: Counter[str] = Counter()
    for key, times, _ in facts.tallies:
        waiting += times * ((key.target in _DELAYED) - (key.source in _DELAYED))
        lane = facts.lanes.get(key.lane)
        if key.target == _EXECUTING and lane is not None:
            started[lane.queue] += times
    return Outlook(depths, depth, waiting, started, sample_of(facts.tallies, facts.now))


_EXECUTING = State.EXECUTING.code
_DELAYED = frozenset({State.SCHEDULED.code, State.RETRYING.code})
