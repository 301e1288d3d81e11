"""get, heads, workers, holdings, controls: looking without touching."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from fairlane.core import limits
from fairlane.core.cursors import cursor_of, item_of
from fairlane.core.flow import Flow, reads
from fairlane.core.holdings import MARK, Holdings
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Attempt, Task, Worker
from fairlane.core.records import attempt_of
from fairlane.core.tally import Tally, TallyKey
from fairlane.engines.compression.results import expand_tasks
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.rows import Row, task_of, worker_of

SQL = statements(__package__, "inspect")


def fetch(self: Context, task_ids: Sequence[str], now: int) -> Flow[dict[str, Task]]:
    """Return tasks by their ids, inside any operation."""
    yield from self.catalogue.refresh()
    wanted = (json.dumps(list(task_ids)),)
    runs: dict[str, list[Attempt]] = {}
    for task_id, *run in (yield Execute(SQL["attempts"], wanted)):
        runs.setdefault(task_id, []).append(attempt_of(*run))
    rows = yield Execute(SQL["tasks"], wanted)
    return _tasks_of(self, rows, runs, now)


def _tasks_of(
    self: Context, rows: Iterable[Row], runs: Mapping[str, list[Attempt]], now: int
) -> dict[str, Task]:
    """Return tasks by their ids, out of their rows."""
    found: dict[str, Task] = {}
    for lane_id, *row in rows:
        task_id, lane = row[0], self.catalogue.lane(lane_id)
        found[task_id] = task_of(tuple(row), lane, runs.get(task_id, []), self.catalogue.aging, now)
    return found


@reads
def get(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found = yield from fetch(self, task_ids, self.clock())
    return (yield from expand_tasks(found.get(task_id) for task_id in task_ids))


@reads
def heads(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    yield from self.catalogue.refresh()
    rows = yield Execute(SQL["heads"], (json.dumps(list(task_ids)),))
    found = _tasks_of(self, rows, {}, self.clock())
    return [found.get(task_id) for task_id in task_ids]


@reads
def workers(self: Context) -> Flow[list[Worker]]:
    return (yield from all_workers(self.clock()))


def all_workers(now: int) -> Flow[list[Worker]]:
    """Return the workers, inside any operation."""
    held: dict[str, list[str]] = {}
    for worker_id, task_id in (yield Execute(SQL["holdings"])):
        held.setdefault(worker_id, []).append(task_id)
    rows = (yield Execute(SQL["workers"])).fetchall()
    return [worker_of(row, held.get(row[0], []), now) for row in rows]


@reads
def holdings(
    self: Context, worker_id: str, limit: int, cursor: str | None = None
) -> Flow[Holdings]:
    most = min(limit, limits.BATCH)
    rows = yield Execute(SQL["runs_of_worker"], (worker_id, item_of(MARK, cursor) or "", most))
    runs = rows.fetchall()
    return Holdings(runs, cursor_of(MARK, runs[-1][0]) if len(runs) == most else None)


@reads
def controls(self: Context) -> Flow[Controls]:
    return (yield from self.catalogue.controls())


def all_tallies() -> Flow[list[Tally]]:
    """Return the counters, inside any operation."""
    rows = yield Execute(SQL["tallies"])
    return [Tally(TallyKey(*key), times, seconds) for *key, times, seconds in rows]
