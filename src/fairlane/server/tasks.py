"""What several routes do with tasks: find them, change them, submit them for a caller."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from msgspec.structs import replace

from fairlane.client import requests
from fairlane.core.definitions import Template
from fairlane.core.filters import Filter, Page
from fairlane.core.flow import Op, perform_async
from fairlane.core.ids import is_id
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import NewTask, Swept, Task
from fairlane.core.priority import level_of
from fairlane.core.states import State
from fairlane.server.auth import ANYONE
from fairlane.server.errors import StateConflict, TaskNotFound
from fairlane.server.operations import Call
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.telemetry.tracing import submitting
from fairlane.wire.changes import Change, ReplayedView, SweptView

SWEEP_SECONDS: Final = 2.0
"""How long one request may change tasks before it returns a cursor to continue from."""

# The format of W3C Trace Context, which says to ignore a malformed header.
_TRACEPARENT: Final = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class ReplayOptions(Protocol):
    """How tasks are replayed."""

    @property
    def reset_retry_count(self) -> bool: ...
    @property
    def new_priority(self) -> str | int | None: ...


async def get_task(services: Services, task_id: str) -> Task:
    """Return the task with this id. Raises TaskNotFound, also for a malformed id."""
    (task,) = await services.run(services.ops.get([task_id_of(task_id)]))
    if task is None:
        raise TaskNotFound
    return task


def task_id_of(given: str) -> str:
    """Return the task id of a request. Raises TaskNotFound if it is malformed."""
    if not is_id(given):
        raise TaskNotFound
    return given


async def get_page(services: Services, chosen: Filter, limit: int, cursor: str | None) -> Page:
    """Return a page of tasks."""
    flow = requests.list_bounded(services.ops, chosen, limit, cursor)
    return await perform_async(flow, services.run)


async def get_heads(services: Services, chosen: Filter, limit: int, cursor: str | None) -> Page:
    """Return a page of tasks without payloads, results and runs."""
    flow = requests.list_heads(services.ops, chosen, limit, cursor)
    return await perform_async(flow, services.run)


async def get_first(services: Services, task_ids: Sequence[str]) -> list[Task | None]:
    """Return as many of the first tasks as a page holds."""
    return await perform_async(requests.get_first(services.ops, task_ids), services.run)


def new_level(options: ReplayOptions) -> int | None:
    """Return the level for replayed tasks, None to keep theirs."""
    return None if options.new_priority is None else level_of(options.new_priority)


def check_applied(answer: Change, verb: Verb, among: frozenset[State] | None = None) -> State:
    """Return the state in which the task was before the change. Raises TaskNotFound or
    StateConflict if the change was not applied."""
    if answer.state is None:
        raise TaskNotFound
    if not answer.applied:
        allowed = TRANSITIONS[verb].sources if among is None else among
        raise StateConflict(
            f"The task is {answer.state}: this is for tasks that are {', '.join(sorted(allowed))}.",
            details={"status": answer.state},
        )
    return answer.state


async def replay_task(
    services: Services,
    given: str,
    options: ReplayOptions,
    among: frozenset[State] | None = None,
) -> Response:
    """Replay one task, if it is in one of these states."""
    op = services.ops.replay(
        [task_id_of(given)],
        reset_retry_count=options.reset_retry_count,
        level=new_level(options),
        among=among,
    )
    (answer,) = await services.run(op)
    before = check_applied(answer, Verb.REPLAY, among)
    return Response(ReplayedView(answer.task_id, State.QUEUED, before))


async def sweep(
    services: Services,
    chosen: Filter,
    cursor: str | None,
    apply: Callable[[Filter, str | None], Op[Swept]],
) -> Response:
    """Change the tasks that match a filter, batch by batch, until all are done or time is up."""
    return await sweep_batches(services, cursor, lambda cursor: services.run(apply(chosen, cursor)))


async def sweep_batches(
    services: Services, cursor: str | None, change: Callable[[str | None], Awaitable[Swept]]
) -> Response:
    """Change batch after batch, each from the cursor of the one before."""
    matched = changed = 0
    deadline = time.monotonic() + SWEEP_SECONDS
    while True:
        found = await change(cursor)
        matched += found.matched
        changed += found.applied
        cursor = found.cursor
        if cursor is None or services.stopping.is_set() or time.monotonic() > deadline:
            return Response(SweptView(matched=matched, applied=changed, next_cursor=cursor))


async def template_of(services: Services, type: str | None) -> Template | None:
    """Return how tasks of a type are submitted. None: what is published does not matter."""
    return None if type is None else await services.templates.get(type)


def submission(
    call: Call[Any, Any], tasks: Sequence[NewTask]
) -> AbstractContextManager[Sequence[NewTask]]:
    """Return a block in which the tasks of a request are submitted. It yields the tasks, which then
    belong to the caller and to the trace in the request's `traceparent` header."""
    if call.identity is not ANYONE:
        tasks = [call.identity.owned(task) for task in tasks]
    given = call.headers.get(b"traceparent")
    found = None if given is None else _TRACEPARENT.fullmatch(given)
    if found is not None:
        tasks = [_join_trace(task, found[0].decode(), found[1].decode()) for task in tasks]
    return submitting(tasks)


def _join_trace(task: NewTask, traceparent: str, trace_id: str) -> NewTask:
    """Make a task part of a trace, unless it names a trace itself."""
    spec = task.spec
    if spec.traceparent is not None:
        return task
    named = spec.trace_id or trace_id
    return replace(task, spec=replace(spec, traceparent=traceparent, trace_id=named))
