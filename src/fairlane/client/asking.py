"""What one can ask of a store about tasks, as flows whose calls are operations.

Written once and performed in two colours: see `fairlane.core.flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.core import limits
from fairlane.core.filters import EVERYTHING, Filter, Page, new_filter
from fairlane.core.flow import Flow
from fairlane.core.model import Accepted, Cancelled, NewTask, Replayed, Task
from fairlane.core.priority import level_of
from fairlane.core.store import Operations

LOOKS = 20
"""So often a store is asked on behalf of somebody who waits for an answer."""


def submitted(ops: Operations, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    """Any number of tasks, a thousand in one go; each thousand is all or none."""
    answers: list[Accepted] = []
    for start in range(0, len(tasks), limits.SUBMIT_BATCH):
        answers += yield ops.submit(tasks[start : start + limits.SUBMIT_BATCH])
    return answers


def found(ops: Operations, task_id: str) -> Flow[Task | None]:
    """The task as it stands."""
    tasks: list[Task | None] = yield ops.get([task_id])
    return tasks[0]


def listed(ops: Operations, limit: int, cursor: str | None, wanted: dict[str, Any]) -> Flow[Page]:
    """A page with something on it, or the last one."""
    chosen = new_filter(**wanted) if wanted else EVERYTHING
    while True:
        page = yield from looked(ops, chosen, limit, cursor)
        if page.tasks or page.next_cursor is None:
            return page
        cursor = page.next_cursor


def looked(ops: Operations, chosen: Filter, limit: int, cursor: str | None) -> Flow[Page]:
    """A page with something on it, or the last one, or where to go on: a store can be so large that
    looking for a rare task takes long."""
    looks = 0
    while True:
        page: Page = yield ops.page(chosen, limit, cursor)
        looks += 1
        if page.tasks or page.next_cursor is None or looks == LOOKS:
            return page
        cursor = page.next_cursor


def cancelled(ops: Operations, task_id: str) -> Flow[Cancelled]:
    """End a task as cancelled."""
    answers: list[Cancelled] = yield ops.cancel([task_id])
    return answers[0]


def retried(
    ops: Operations, task_id: str, priority: str | int | None, *, reset_retry_count: bool
) -> Flow[Replayed]:
    """Make a task ready again."""
    level = None if priority is None else level_of(priority)
    op = ops.replay([task_id], reset_retry_count=reset_retry_count, level=level)
    answers: list[Replayed] = yield op
    return answers[0]
