"""get, workers, controls, tallies, depths, events: looking without touching."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import InvalidInput
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Event, Task, Worker
from fairlane.core.tally import Tally, TallyKey
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.rows import array_of_ids, passage_of, task_of, worker_of
from fairlane.engines.postgres.statements import load

SQL = load("inspect")

_CURSOR = re.compile(r"([0-9]{1,19})-([0-9]{1,18})\Z")


def fetch(self: Context, task_ids: Sequence[str]) -> Flow[dict[str, Task]]:
    """Tasks by their ids, inside any operation."""
    if not task_ids:
        return {}
    rows = yield Query(SQL["get"], (array_of_ids(task_ids),))
    found = {}
    for row in rows:
        lane = yield from self.catalogue.lane(row[1])
        task = task_of(row, lane, self.aging)
        found[task.task_id] = task
    return found


@reads
def get(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found = yield from fetch(self, task_ids)
    return [found.get(task_id) for task_id in task_ids]


@reads
def workers(self: Context) -> Flow[list[Worker]]:
    rows = yield Query(SQL["workers"])
    return [worker_of(row) for row in rows]


@reads
def controls(self: Context) -> Flow[Controls]:
    return (yield from self.catalogue.load()).controls


@reads
def tallies(self: Context) -> Flow[list[Tally]]:
    rows = yield Query(SQL["tallies"])
    return [Tally(TallyKey(*key), times, seconds) for *key, times, seconds in rows]


@reads
def depths(self: Context) -> Flow[dict[tuple[str, int], int]]:
    rows = yield Query(SQL["depths"])
    return {(queue, level): depth for queue, level, depth in rows}


@reads
def events(self: Context, after: str | None, limit: int) -> Flow[list[Event]]:
    cursor = _CURSOR.match("0-0" if after is None else after)
    if cursor is None:
        raise InvalidInput("This cursor was not made by this store: begin without one.")
    xid, n = cursor.groups()
    rows = yield Query(SQL["events"], (xid, int(n), limits.BATCH))
    found: list[Event] = []
    for row in rows:
        if len(found) >= limit:
            break
        place, at, passage = passage_of(row)
        if passage.lane:
            yield from self.catalogue.lane(passage.lane)
        found += passage.events(place, at, self.catalogue.known.lanes.get)
    return found
