"""`/api/v1/tasks`: reading tasks, and waiting for their results."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, Final, TypeVar

import msgspec

from fairlane.core import limits
from fairlane.core.filters import Total
from fairlane.core.ids import checked_all
from fairlane.core.model import Task
from fairlane.core.states import TERMINAL
from fairlane.server.errors import TaskNotFound
from fairlane.server.operations import OWN, READ, Call, Operation
from fairlane.server.requests import ClientGone
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.tasks import get_first, get_heads, get_page, get_task, task_id_of
from fairlane.wire.filters import TaskListQuery, TaskQuery
from fairlane.wire.tasks import encode_task
from fairlane.wire.tasks_read import (
    SummaryPage,
    TaskDetail,
    TaskLookup,
    TaskPage,
    TaskResult,
    TasksFound,
    WhyView,
    encode_detail,
    encode_page,
    encode_result,
    encode_summaries,
    encode_why,
)

T = TypeVar("T")


class DetailQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`include_history`: also return the states that the task went through."""

    include_history: bool = False


class ResultQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`wait`: seconds to wait at most for the result; the server may wait less."""

    wait: Annotated[float, msgspec.Meta(ge=0)] = 0.0


async def list_tasks(services: Services, call: Call[None, TaskListQuery]) -> Response:
    """List tasks, newest first. A page may be short, or even empty, although there are more."""
    query = call.query
    return Response(
        encode_page(await get_page(services, query.chosen(), query.limit, query.cursor))
    )


async def list_summaries(services: Services, call: Call[None, TaskListQuery]) -> Response:
    """List summaries of tasks: without payloads, results, runs and tracebacks."""
    query = call.query
    found = await get_heads(services, query.chosen(), query.limit, query.cursor)
    return Response(encode_summaries(found))


async def count(services: Services, call: Call[None, TaskQuery]) -> Response:
    """Count tasks. `exact` is false if there are more than were counted."""
    return Response(await services.run(services.ops.total(call.query.chosen())))


async def lookup(services: Services, call: Call[TaskLookup, None]) -> Response:
    """Read tasks by id. Of many large tasks only the first are returned."""
    wanted = call.body.task_ids
    checked_all(wanted, limits.SUBMIT_BATCH)
    tasks = await get_first(services, wanted)
    return Response(
        TasksFound(tuple(None if task is None else encode_task(task) for task in tasks))
    )


async def detail(services: Services, call: Call[None, DetailQuery]) -> Response:
    """Read everything about a task."""
    task = await get_task(services, call.path["task_id"])
    if not call.query.include_history:
        return Response(encode_detail(task))
    facts = await services.run(services.ops.facts())
    return Response(encode_detail(task, facts.now))


async def result(services: Services, call: Call[None, ResultQuery]) -> Response:
    """Read or wait for the result of a task. The status is 200 once it has ended, 202 until
    then."""
    wanted = task_id_of(call.path["task_id"])
    seconds = min(call.query.wait, services.config.longest_wait)
    task: Task | None = None
    if seconds:
        task = await _wait_for(services, call, services.results.wait(wanted), seconds)
    if task is None:
        task = await get_task(services, wanted)
    return Response(encode_result(task), 200 if task.state in TERMINAL else 202)


async def why(services: Services, call: Call[None, None]) -> Response:
    """Explain why a task waits."""
    reasons = await services.run(services.ops.why(task_id_of(call.path["task_id"])))
    if reasons is None:
        raise TaskNotFound
    return Response(encode_why(reasons))


async def _wait_for(
    services: Services, call: Call[Any, Any], work: Coroutine[Any, Any, T], seconds: float
) -> T | None:
    """Return the result of `work`; None after `seconds`, or when the server is to stop.

    Raises ClientGone if the client leaves.
    """
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    leaving = loop.create_task(_leave(call))
    stopping = loop.create_task(services.stopping.wait())
    try:
        await asyncio.wait(
            (working, leaving, stopping), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if working.done():
            return working.result()
        if leaving.done():
            raise ClientGone
        return None
    finally:
        for task in (working, leaving, stopping):
            task.cancel()


async def _leave(call: Call[Any, Any]) -> None:
    await call.left()


OPERATIONS: Final = [
    Operation(
        "GET", "/api/v1/tasks", list_tasks, READ, READ, query=TaskListQuery, returns=TaskPage
    ),
    Operation(
        "GET",
        "/api/v1/tasks/summaries",
        list_summaries,
        READ,
        READ,
        query=TaskListQuery,
        returns=SummaryPage,
    ),
    Operation("GET", "/api/v1/tasks/count", count, READ, READ, query=TaskQuery, returns=Total),
    Operation(
        "POST", "/api/v1/tasks/lookup", lookup, OWN, OWN, body=TaskLookup, returns=TasksFound
    ),
    Operation(
        "GET", "/api/v1/tasks/{task_id}", detail, OWN, OWN, query=DetailQuery, returns=TaskDetail
    ),
    Operation(
        "GET",
        "/api/v1/tasks/{task_id}/result",
        result,
        OWN,
        OWN,
        query=ResultQuery,
        returns=TaskResult,
        further=(202,),
    ),
    Operation("GET", "/api/v1/tasks/{task_id}/why", why, OWN, OWN, returns=WhyView),
]
