"""Stored rows become structs."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.core.lanes import Lane
from fairlane.core.model import Attempt, Progress, Task, Worker, moment
from fairlane.core.priority import Aging
from fairlane.core.records import TaskRecord, WorkerRecord

Row = tuple[Any, ...]


def task_of(row: Row, lane: Lane, attempts: list[Attempt], aging: Aging, now: int) -> Task:
    """Return a task out of its row in the view, with what is known of its runs."""
    *record, progress = row
    return TaskRecord(*record).task(lane, attempts, progress_of(progress), aging, now)


def worker_of(row: Row, current_tasks: list[str], now: int) -> Worker:
    """Return a worker out of its row."""
    return WorkerRecord(*row).worker(current_tasks, now)


def stored_progress(percent: float | None, message: str | None, now: int) -> bytes:
    """Progress as it is stored."""
    return msgspec.json.encode((percent, message, now))


def progress_of(stored: bytes | None) -> Progress | None:
    """Return what `stored_progress` was given."""
    if stored is None:
        return None
    percent, message, at = msgspec.json.decode(stored)
    return Progress(percent, message, moment(at))
