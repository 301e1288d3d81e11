"""Responses of the routes that read tasks."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairlane.core import limits
from fairlane.core.filters import Page
from fairlane.core.history import Step, history_of
from fairlane.core.model import Task, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.why import Reason
from fairlane.wire.runs import ErrorView, encode_error
from fairlane.wire.tasks import (
    TaskSummary,
    TaskView,
    encode_fields,
    encode_summary,
    encode_task,
    raw_result,
)
from fairlane.wire.times import Moment, iso
from fairlane.wire.values import TaskId


class StepView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state that a task entered."""

    state: State
    timestamp: Moment
    worker_id: str | None = None
    attempt: int | None = None
    reason: str | None = None


class TaskDetail(TaskView, frozen=True, kw_only=True):
    """Everything about a task, and its history if that was asked for."""

    state_history: tuple[StepView, ...] | msgspec.UnsetType = msgspec.UNSET
    """Every state that it entered, oldest first. Of more than 100 earlier runs and replays the
    oldest do not tell when the task was queued again."""
    current_state_duration_seconds: float | msgspec.UnsetType = msgspec.UNSET


class TaskPage(msgspec.Struct, frozen=True):
    """Tasks, newest first. A page may be short, or even empty, although there are more: continue
    while there is a `next_cursor`."""

    tasks: tuple[TaskView, ...]
    next_cursor: str | None


class SummaryPage(msgspec.Struct, frozen=True):
    """Summaries of tasks, newest first. As with `TaskPage`, continue while there is a
    `next_cursor`."""

    tasks: tuple[TaskSummary, ...]
    next_cursor: str | None


class TaskLookup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ids of up to 1,000 tasks."""

    task_ids: Annotated[
        tuple[TaskId, ...], msgspec.Meta(extra_json_schema={"maxItems": limits.SUBMIT_BATCH})
    ]


class TasksFound(msgspec.Struct, frozen=True):
    """Tasks in the order of the request; null for one that does not exist. Of many large tasks only
    the first are returned, one at least: ask for the others again."""

    tasks: tuple[TaskView | None, ...]


class TaskResult(msgspec.Struct, frozen=True):
    """The result of a task; `result` and `error` are null until it has ended."""

    status: State
    result: msgspec.Raw
    error: ErrorView | None


class ReasonView(msgspec.Struct, frozen=True):
    """A reason: a code for programs, a sentence for people."""

    code: str
    message: str


class WhyView(msgspec.Struct, frozen=True):
    """Why a waiting task waits, the decisive reasons first; empty for one that does not wait."""

    reasons: tuple[ReasonView, ...]


def encode_detail(task: Task, now: int | None = None) -> TaskDetail:
    """Return a task with its history, if `now`, the store's time, is given."""
    detail = TaskDetail(**encode_fields(task))
    if now is None:
        return detail
    steps = history_of(task)
    spent = max(0, now - microseconds_of(steps[-1].at)) / MICROSECONDS
    return msgspec.structs.replace(
        detail,
        state_history=tuple(map(_step, steps)),
        current_state_duration_seconds=spent,
    )


def encode_page(page: Page) -> TaskPage:
    """Return a page of tasks."""
    return TaskPage(tuple(map(encode_task, page.tasks)), page.next_cursor)


def encode_summaries(page: Page) -> SummaryPage:
    """Return a page of summaries."""
    return SummaryPage(tuple(map(encode_summary, page.tasks)), page.next_cursor)


def encode_result(task: Task) -> TaskResult:
    """Return the result of a task."""
    return TaskResult(task.state, raw_result(task.result), encode_error(task.error))


def encode_why(reasons: list[Reason]) -> WhyView:
    """Return why a task waits."""
    return WhyView(tuple(ReasonView(each.code, each.message) for each in reasons))


def _step(step: Step) -> StepView:
    return StepView(step.state, iso(step.at), step.worker_id, step.attempt, step.reason)
