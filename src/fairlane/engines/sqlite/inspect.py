"""get, workers, controls, tallies, depths, events: looking without touching."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core import journal, limits
from fairlane.core.errors import InvalidInput
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Attempt, Event, Task, Worker
from fairlane.core.records import attempt_of
from fairlane.core.tally import Tally, TallyKey
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import Execute
from fairlane.engines.sqlite.rows import task_of, worker_of

SQL = statements(__package__, "inspect")


def fetch(self: Context, task_ids: Sequence[str], now: int) -> Flow[dict[str, Task]]:
    """Tasks by their ids, inside any operation."""
    yield from self.catalogue.refresh()
    wanted = (json.dumps(list(task_ids)),)
    runs: dict[str, list[Attempt]] = {}
    for task_id, *run in (yield Execute(SQL["attempts"], wanted)):
        runs.setdefault(task_id, []).append(attempt_of(*run))
    found: dict[str, Task] = {}
    for lane_id, *row in (yield Execute(SQL["tasks"], wanted)):
        task_id, lane = row[0], self.catalogue.lane(lane_id)
        found[task_id] = task_of(tuple(row), lane, runs.get(task_id, []), self.aging, now)
    return found


@reads
def get(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found = yield from fetch(self, task_ids, self.clock())
    return [found.get(task_id) for task_id in task_ids]


@reads
def workers(self: Context) -> Flow[list[Worker]]:
    now = self.clock()
    held: dict[str, list[str]] = {}
    for worker_id, task_id in (yield Execute(SQL["holdings"])):
        held.setdefault(worker_id, []).append(task_id)
    rows = (yield Execute(SQL["workers"])).fetchall()
    return [worker_of(row, held.get(row[0], []), now) for row in rows]


@reads
def controls(self: Context) -> Flow[Controls]:
    return (yield from self.catalogue.controls())


@reads
def tallies(self: Context) -> Flow[list[Tally]]:
    rows = yield Execute(SQL["tallies"])
    return [Tally(TallyKey(*key), times, seconds) for *key, times, seconds in rows]


@reads
def depths(self: Context) -> Flow[dict[tuple[str, int], int]]:
    rows = yield Execute(SQL["depths"])
    return {(queue, level): depth for queue, level, depth in rows}


@reads
def events(self: Context, after: str | None, limit: int) -> Flow[list[Event]]:
    if after is not None and not after.isdecimal():
        raise InvalidInput("This cursor was not made by this store: begin without one.")
    yield from self.catalogue.refresh()
    rows = yield Execute(SQL["events"], (int(after or 0), limits.BATCH))
    found: list[Event] = []
    for number, at, entry in rows:
        if len(found) >= limit:
            break
        for passage in journal.decode(entry):
            found += passage.events(str(number), at, self.catalogue.known_lane)
    return found
