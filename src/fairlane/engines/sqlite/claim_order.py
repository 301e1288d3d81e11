"""Which tasks a claim takes first: a merge of streams by effective priority."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from heapq import heappop, heappush

from fairlane.core.flow import Flow
from fairlane.core.lanes import Opening
from fairlane.core.streams import FEW, Head, first_heads
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "claim")

Stream = tuple[int, int]
"""(lane, level)"""

Picked = dict[Stream, int]
"""How many of a stream's tasks come first. What a claim takes of a stream is always its head."""


def streams_of(self: Context, opening: Opening, most: int, now: int) -> Flow[list[Stream]]:
    """Return the streams from which `most` tasks of an opening can be claimed."""
    if self.catalogue.size <= FEW:
        lanes = set(opening.lanes)
        return [stream for stream in (yield Execute(SQL["streams"])) if stream[0] in lanes]
    if not opening.spans:
        return []
    rows = yield Execute(SQL["heads"], (json.dumps(opening.spans),))
    limited = {lane for quota in opening.quotas for lane in quota.lanes}
    return first_streams(self, map(Head._make, rows), limited, most, now)


def first_streams(
    self: Context, heads: Iterable[Head], limited: Container[int], most: int, now: int
) -> list[Stream]:
    """Return the streams from which `most` tasks can be claimed, of each type in limited lanes."""

    def group_of(head: Head) -> str | None:
        return self.catalogue.lane(head.lane).type if head.lane in limited else None

    chosen = first_heads(list(heads), self.catalogue.aging, now, most, group_of)
    return [(head.lane, head.level) for head in chosen]


def merge(
    self: Context,
    streams: list[Stream],
    now: int,
    left: dict[int, Left],
    most: int,
    statement: str = SQL["stream"],
    values: tuple[int, ...] = (),
) -> Flow[Picked]:
    """Return how many of each stream's tasks come first: a lazy merge, one row ahead per stream.

    Within a stream ready_at only grows, so effective priority only falls: the merge key ascends.
    `left` says for the lanes of limited types how many may still be taken. `statement` reads a
    stream, with further `values` after its lane and level.
    """
    effective = self.catalogue.aging.effective
    heap: list[tuple[int, int, str, int, Iterator[tuple[int, str]]]] = []

    def push(number: int, rows: Iterator[tuple[int, str]]) -> None:
        for ready_at, task_id in rows:
            level = effective(streams[number][1], now - ready_at)
            heappush(heap, (-level, ready_at, task_id, number, rows))
            return

    for number, stream in enumerate(streams):
        push(number, (yield Execute(statement, (*stream, *values))))
    picked: Picked = {}
    while heap and most:
        _, _, _, number, rows = heappop(heap)
        quota = left.get(streams[number][0])
        if quota is not None and not quota.take():
            continue  # exhausted: the rest of this stream stays
        picked[streams[number]] = picked.get(streams[number], 0) + 1
        most -= 1
        push(number, rows)
    return picked


class Left:
    """How much of a limited type may still be claimed, under what all of them share."""

    def __init__(self, most: int, shared: Left | None) -> None:
        self.most = most
        self.taken = 0
        self.shared = shared

    def take(self) -> bool:
        if self.taken >= self.most or (self.shared and not self.shared.take()):
            return False
        self.taken += 1
        return True
