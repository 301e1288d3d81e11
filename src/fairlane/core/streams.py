"""Which streams a claim reads. A stream is the tasks of one lane and level, in the order of claims.

There may be thousands of lanes, most of them empty. An engine finds the streams that have tasks
from the tasks themselves, within the spans of numbers that hold the worker's lanes: what is empty,
and what the worker may not take, costs a claim nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import nsmallest
from typing import NamedTuple

from fairlane.core.priority import Aging

FEW = 64
"""Up to this number of lanes, an engine may look at all of them: that is faster than a search."""

Span = tuple[int, int]
"""The numbers of lanes from the first to the last, both included."""


class Head(NamedTuple):
    """A stream that has tasks, and the first of them."""

    lane: int
    level: int
    ready_at: int
    task_id: str


def spans_of(lanes: Iterable[int], every: Iterable[int]) -> tuple[Span, ...]:
    """Return the longest spans that hold these lanes and no other one of `every`, ascending."""
    chosen = set(lanes)
    spans: list[Span] = []
    begun: int | None = None
    last = 0
    for lane in sorted(every):
        if lane in chosen:
            begun = lane if begun is None else begun
            last = lane
        elif begun is not None:
            spans.append((begun, last))
            begun = None
    return tuple(spans) if begun is None else (*spans, (begun, last))


def first_heads(
    heads: Sequence[Head], aging: Aging, now: int, most: int, group_of: Callable[[Head], Hashable]
) -> list[Head]:
    """Return the streams from which `most` tasks of each group can be claimed.

    No task comes before the first one of its stream, so n streams are enough for n tasks.
    """
    if len(heads) <= most:
        return list(heads)

    def rank(head: Head) -> tuple[int, int, str]:
        return (-aging.effective(head.level, now - head.ready_at), head.ready_at, head.task_id)

    groups: dict[Hashable, list[Head]] = {}
    for head in heads:
        groups.setdefault(group_of(head), []).append(head)
    return [head for group in groups.values() for head in nsmallest(most, group, rank)]
