"""get, heads, workers, holdings, controls: read-only operations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import InvalidCursor
from fairlane.core.flow import Flow, reads
from fairlane.core.holdings import MARK, Holdings
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Task, Worker
from fairlane.engines.compression.results import expand_tasks
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.record import raw_id, unpacked
from fairlane.engines.redis.rows import (
    WORKER_FIELDS,
    run_of,
    task_of,
    worker_of,
)
from fairlane.engines.redis.scripts import Script, script

GET = script("get")
HEADS = script("heads")
WORKERS = script("workers")
HOLDINGS = script("holdings")

_HEADS_AT_ONCE = 100  # Redis has to read payloads, too, although it does not return them


def fetch(self: Context, task_ids: Sequence[str]) -> Flow[tuple[dict[str, Task], int]]:
    """Return tasks by their ids, and the engine's now. For use inside any operation."""
    return (yield from _fetch(self, GET, limits.BATCH, task_ids))


def _fetch(
    self: Context, reading: Script, at_once: int, task_ids: Sequence[str]
) -> Flow[tuple[dict[str, Task], int]]:
    found: dict[str, Task] = {}
    unique = list(dict.fromkeys(task_ids))
    now = 0
    for start in range(0, len(unique), at_once):
        page = unique[start : start + at_once]
        stamp, version, *columns = yield from self.call(reading, *map(raw_id, page))
        now = int(stamp)
        if version != self.catalogue.version:
            yield from self.refresh()  # tasks may age in another way now
        for task_id, stored, *known in zip(page, *columns, strict=True):
            if stored:
                record = unpacked(stored)
                lane = yield from self.lane(record.lane)
                if lane is None:
                    continue  # dropped since, so the task is gone as well
                aging = self.catalogue.aging
                found[task_id] = task_of(task_id, record, *known, lane=lane, aging=aging, now=now)
    return found, now


@reads
def get(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found, _ = yield from fetch(self, task_ids)
    return (yield from expand_tasks(found.get(task_id) for task_id in task_ids))


@reads
def heads(self: Context, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found, _ = yield from _fetch(self, HEADS, _HEADS_AT_ONCE, task_ids)
    return [found.get(task_id) for task_id in task_ids]


@reads
def workers(self: Context) -> Flow[list[Worker]]:
    now, rows = yield from self.call(WORKERS, *WORKER_FIELDS)
    return [worker_of(worker_id, row, runs, int(now)) for worker_id, row, runs in rows]


@reads
def holdings(
    self: Context, worker_id: str, limit: int, cursor: str | None = None
) -> Flow[Holdings]:
    position = "0" if cursor is None else _position(cursor)
    end, runs = yield from self.call(HOLDINGS, worker_id, position, min(limit, limits.BATCH))
    return Holdings([run_of(run) for run in runs], None if end == b"0" else MARK + end.decode())


def _position(cursor: str) -> str:
    """Return where the scan of a set goes on."""
    position = cursor[1:]
    if cursor[:1] != MARK or not re.fullmatch("[0-9]{1,20}", position) or int(position) >= 2**64:
        raise InvalidCursor
    return position


@reads
def controls(self: Context) -> Flow[Controls]:
    return (yield from self.refresh()).controls
