"""get, heads, workers, holdings, controls: reading tasks, workers and settings."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.cursors import cursor_of, item_of
from fairlane.core.flow import Flow, reads
from fairlane.core.holdings import MARK, Holdings
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Task, Worker
from fairlane.core.tally import Tally, TallyKey
from fairlane.engines.compression.results import expand_tasks
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.rows import array_of_ids, task_of, worker_of
from fairlane.engines.postgres.statements import load

SQL = load("inspect")


def fetch(self: Context, task_ids: Sequence[str]) -> Flow[dict[str, Task]]:
    """Return tasks by their ids, as part of another operation."""
    return (yield from _fetch(self, SQL["get"], task_ids))


def _fetch(self: Context, statement: str, task_ids: Sequence[str]) -> Flow[dict[str, Task]]:
    if not task_ids:
        return {}
    rows = yield Query(statement, (array_of_ids(task_ids),))
    if rows and rows[0][1] != self.catalogue.known.version:
        yield from self.catalogue.load()  # tasks may age in another way now
    found = {}
    for row in rows:
        lane = yield from self.catalogue.lane(row[2])
        if lane is None:
            continue  # dropped since, so the task is gone as well
        task = task_of(row, lane, self.catalogue.known.aging)
        found[task.task_id] = task
    return found


@reads
def get(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found = yield from fetch(self, task_ids)
    return (yield from expand_tasks(found.get(task_id) for task_id in task_ids))


@reads
def heads(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found = yield from _fetch(self, SQL["heads"], task_ids)
    return [found.get(task_id) for task_id in task_ids]


@reads
def workers(self: Context) -> Flow[list[Worker]]:
    return (yield from read_workers())


def read_workers() -> Flow[list[Worker]]:
    """Return all workers, as part of another operation."""
    held = dict((yield Query(SQL["held_by_worker"])))
    rows = yield Query(SQL["workers"])
    return [worker_of(row, sorted(held.get(row[1], ()))) for row in rows]


@reads
def holdings(
    self: Context, worker_id: str, limit: int, cursor: str | None = None
) -> Flow[Holdings]:
    most = min(limit, limits.BATCH)
    rows = yield Query(SQL["runs_of_worker"], (worker_id, item_of(MARK, cursor), most))
    runs = [(task_id, attempt) for task_id, attempt in rows]
    return Holdings(runs, cursor_of(MARK, runs[-1][0]) if len(runs) == most else None)


@reads
def controls(self: Context) -> Flow[Controls]:
    return (yield from self.catalogue.load()).controls


def read_counters() -> Flow[list[Tally]]:
    """Return the counters, as part of another operation."""
    rows = yield Query(SQL["tallies"])
    return [Tally(TallyKey(*key), times, seconds) for *key, times, seconds in rows]
