"""`/api/v1/tasks`: looking at tasks, and waiting for what becomes of them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from fairlane.core.filters import Total
from fairlane.core.model import Task
from fairlane.core.states import TERMINAL
from fairlane.server.answers import Answer
from fairlane.server.errors import TaskNotFound
from fairlane.server.operations import OWN, READ, Call, Operation
from fairlane.server.services import Services
from fairlane.server.tasks import found_page, one_task, page, task_id_of
from fairlane.server.waiting import waited
from fairlane.wire.filters import TaskListQuery, TaskQuery
from fairlane.wire.tasks import (
    SummaryPage,
    TaskDetail,
    TaskLookup,
    TaskPage,
    TaskResult,
    TasksFound,
    WhyView,
    detail_of,
    result_of,
    summaries_of,
    task_of,
    why_of,
)


class DetailQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`include_history`: with the states that it went through."""

    include_history: bool = False


class ResultQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`wait`: for so many seconds at the most; a server may have a limit of its own."""

    wait: Annotated[float, msgspec.Meta(ge=0)] = 0.0


async def listed(services: Services, call: Call[None, TaskListQuery]) -> Answer:
    """Tasks, the newest first. A page may be short, or even empty, although there is more."""
    query = call.query
    return await page(services, query.chosen(), query.limit, query.cursor)


async def summaries(services: Services, call: Call[None, TaskListQuery]) -> Answer:
    """The same without payloads, results, runs and tracebacks: for lists that are drawn often."""
    query = call.query
    found = await found_page(services, query.chosen(), query.limit, query.cursor)
    return Answer(summaries_of(found))


async def counted(services: Services, call: Call[None, TaskQuery]) -> Answer:
    """How many tasks there are. `exact` is false when there are more than were looked at."""
    return Answer(await services.run(services.ops.total(call.query.chosen())))


async def lookup(services: Services, call: Call[TaskLookup, None]) -> Answer:
    """Everything about some tasks."""
    tasks = await services.run(services.ops.get(call.body.task_ids))
    return Answer(TasksFound(tuple(None if task is None else task_of(task) for task in tasks)))


async def detail(services: Services, call: Call[None, DetailQuery]) -> Answer:
    """Everything about a task."""
    task = await one_task(services, call.path["task_id"])
    if not call.query.include_history:
        return Answer(detail_of(task))
    facts = await services.run(services.ops.facts())
    return Answer(detail_of(task, facts.now))


async def result(services: Services, call: Call[None, ResultQuery]) -> Answer:
    """What became of a task: 200 once it has ended, 202 as long as it has not."""
    wanted = task_id_of(call.path["task_id"])
    seconds = min(call.query.wait, services.config.longest_wait)
    task: Task | None = None
    if seconds:
        task = await waited(services, call, services.results.wait(wanted), seconds)
    if task is None:
        task = await one_task(services, wanted)
    return Answer(result_of(task), 200 if task.status in TERMINAL else 202)


async def why(services: Services, call: Call[None, None]) -> Answer:
    """Why a waiting task waits."""
    reasons = await services.run(services.ops.why(task_id_of(call.path["task_id"])))
    if reasons is None:
        raise TaskNotFound
    return Answer(why_of(reasons))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/tasks",
        handler=listed,
        summary="List tasks",
        scopes=READ,
        query=TaskListQuery,
        returns=TaskPage,
    ),
    Operation(
        method="GET",
        path="/api/v1/tasks/summaries",
        handler=summaries,
        summary="List tasks in short",
        scopes=READ,
        query=TaskListQuery,
        returns=SummaryPage,
    ),
    Operation(
        method="GET",
        path="/api/v1/tasks/count",
        handler=counted,
        summary="Count tasks",
        scopes=READ,
        query=TaskQuery,
        returns=Total,
    ),
    Operation(
        method="POST",
        path="/api/v1/tasks/lookup",
        handler=lookup,
        summary="Look at some tasks",
        scopes=OWN,
        body=TaskLookup,
        returns=TasksFound,
    ),
    Operation(
        method="GET",
        path="/api/v1/tasks/{task_id}",
        handler=detail,
        summary="Look at a task",
        scopes=OWN,
        query=DetailQuery,
        returns=TaskDetail,
    ),
    Operation(
        method="GET",
        path="/api/v1/tasks/{task_id}/result",
        handler=result,
        summary="Wait for a task",
        scopes=OWN,
        query=ResultQuery,
        returns=TaskResult,
        further=(202,),
    ),
    Operation(
        method="GET",
        path="/api/v1/tasks/{task_id}/why",
        handler=why,
        summary="Why a task waits",
        scopes=OWN,
        returns=WhyView,
    ),
]
