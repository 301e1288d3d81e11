"""Requests of the Python API, as flows whose calls are operations of the store.

They are written once and performed in two colours: see `fairlane.core.flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.core import limits
from fairlane.core.filters import EVERYTHING, Filter, Found, Page, PageRoom, new_filter
from fairlane.core.flow import Flow
from fairlane.core.model import Accepted, Cancelled, NewTask, Replayed, Task
from fairlane.core.priority import level_of
from fairlane.core.store import Operations
from fairlane.core.workflow_list import WorkflowFilter, WorkflowPage

READS = 20
"""How many pages are read on behalf of a caller that waits for an answer."""


def submit(ops: Operations, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    """Submit any number of tasks, a thousand at a time; each thousand is all or none."""
    answers: list[Accepted] = []
    for start in range(0, len(tasks), limits.SUBMIT_BATCH):
        answers += yield ops.submit(tasks[start : start + limits.SUBMIT_BATCH])
    return answers


def submit_workflow(ops: Operations, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    """Submit the tasks of a workflow, all or none."""
    answers: list[Accepted] = yield ops.submit_workflow(tasks)
    return answers


def get(ops: Operations, task_id: str) -> Flow[Task | None]:
    """Return the task, or None if there is none."""
    tasks: list[Task | None] = yield ops.get([task_id])
    return tasks[0]


def list_tasks(
    ops: Operations, limit: int, cursor: str | None, wanted: dict[str, Any]
) -> Flow[Page]:
    """Return the next page that holds tasks, or the last page."""
    chosen = new_filter(**wanted) if wanted else EVERYTHING
    while True:
        page = yield from list_bounded(ops, chosen, limit, cursor)
        if page.tasks or page.next_cursor is None:
            return page
        cursor = page.next_cursor


def list_bounded(ops: Operations, chosen: Filter, limit: int, cursor: str | None) -> Flow[Page]:
    """`list_tasks` within bounds: after `READS` empty pages it returns an empty one with a cursor.

    Finding a rare task in a large store can take longer than a request may.
    """
    reads = 0
    while True:
        page: Page = yield ops.page(chosen, limit, cursor)
        reads += 1
        if page.tasks or page.next_cursor is None or reads == READS:
            return page
        cursor = page.next_cursor


def get_first(ops: Operations, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    """Return as many of the first tasks as a page holds: one at least, and often all of them."""
    found: list[Task | None] = []
    room = PageRoom()
    for start in range(0, len(task_ids), limits.PAGE_READ):
        some: list[Task | None] = yield ops.get(task_ids[start : start + limits.PAGE_READ])
        for task in some:
            if task is not None and not room.takes(task):
                return found
            found.append(task)
    return found


def list_heads(ops: Operations, chosen: Filter, limit: int, cursor: str | None) -> Flow[Page]:
    """`list_bounded` for the heads of tasks."""
    reads = 0
    while True:
        found: Found = yield ops.find(chosen, limit, cursor)
        heads: list[Task | None] = yield ops.heads(found.task_ids)
        tasks = [task for task in heads if task is not None]
        reads += 1
        cursor = found.cursor
        if tasks or cursor is None or reads == READS:
            return Page(tasks, cursor)


def list_workflows(
    ops: Operations, chosen: WorkflowFilter, limit: int, cursor: str | None
) -> Flow[WorkflowPage]:
    """Return the next page that holds workflows, or the last page. After some empty pages, return
    an empty one with a cursor."""
    reads = 0
    while True:
        page: WorkflowPage = yield ops.workflow_page(chosen, limit, cursor)
        reads += 1
        if page.workflows or page.next_cursor is None or reads == READS:
            return page
        cursor = page.next_cursor


def cancel(ops: Operations, task_id: str) -> Flow[Cancelled]:
    """End a task as cancelled."""
    answers: list[Cancelled] = yield ops.cancel([task_id])
    return answers[0]


def replay(
    ops: Operations, task_id: str, priority: str | int | None, *, reset_retry_count: bool
) -> Flow[Replayed]:
    """Make a task ready again."""
    level = None if priority is None else level_of(priority)
    op = ops.replay([task_id], reset_retry_count=reset_retry_count, level=level)
    answers: list[Replayed] = yield op
    return answers[0]
