"""`/api/tasks`: the API of specification 001 (see `fairlane.wire.spec`)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.audit import Action
from fairlane.core.filters import Filter, new_filter
from fairlane.core.model import Task
from fairlane.core.states import State
from fairlane.core.stats import stats_of
from fairlane.server.errors import HttpError, TaskNotFound
from fairlane.server.operations import ADMIN, OWN, READ, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services, from_facts
from fairlane.server.tasks import get_task, submission, task_id_of
from fairlane.wire import spec
from fairlane.wire.times import Moment, iso_of
from fairlane.wire.values import Attempts, Due, NameText, Rate

PAGE: Final = 50
LARGEST_PAGE: Final = 100
FURTHEST: Final = 100_000
"""The largest offset. `/api/v1/tasks` has cursors, which go further."""

_FAILED: Final = frozenset({State.RETRYING, State.FAILED, State.DEAD_LETTER})
_DELETABLE: Final = _FAILED | {State.COMPLETED, State.CANCELLED}


class WrongState(HttpError):
    """The task is in another state."""

    code = "wrong_state"


class SpecOptions(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """How a task runs."""

    max_attempts: Attempts = spec.MAX_ATTEMPTS
    run_after: Due | None = None


class SpecRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new task. Its payload is any JSON."""

    type: NameText
    payload: msgspec.Raw
    options: SpecOptions = SpecOptions()


class SpecAccepted(msgspec.Struct, frozen=True, rename="camel"):
    """A task that was accepted."""

    id: str
    type: str
    status: str
    created_at: Moment


class SpecListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and which page of them."""

    type: NameText | msgspec.UnsetType = msgspec.UNSET
    status: tuple[spec.StatusName, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)] = PAGE
    offset: Annotated[int, msgspec.Meta(ge=0, le=FURTHEST)] = 0


class SpecPage(msgspec.Struct, frozen=True):
    """A page of tasks, newest first."""

    tasks: list[spec.SpecTask]
    total: int
    limit: int
    offset: int


class SpecRetried(msgspec.Struct, frozen=True, rename="camel"):
    """A task that was replayed."""

    id: str
    status: str
    attempts: int
    next_retry_at: Moment | None


class SpecRate(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many tasks may start in a second, of all types on all workers; 0 means unlimited."""

    tasks_per_second: Rate


class SpecPaused(msgspec.Struct, frozen=True):
    """Whether everything is paused."""

    paused: bool


class SpecCleanup(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Completed tasks older than this are deleted."""

    older_than: Due


class SpecDeleted(msgspec.Struct, frozen=True):
    """How many tasks were deleted."""

    deleted: int


async def create(services: Services, call: Call[SpecRequest, None]) -> Response:
    """Submit a task."""
    body = call.body
    new = spec.new_spec_task(
        body.type,
        bytes(body.payload),
        max_attempts=body.options.max_attempts,
        run_after=body.options.run_after,
    )
    with submission(call, (new,)) as (task,):
        await services.admit(call.identity, call.address, [task])
        accepted = await services.submissions.send(task)
    if accepted.state is State.QUEUED:
        services.places.add(task.queue, task.level)
    created = iso_of(accepted.created_at)
    return Response(SpecAccepted(accepted.task_id, task.type, "pending", created), 201)


async def show(services: Services, call: Call[None, None]) -> Response:
    """Read everything about a task."""
    return Response(_shown(await get_task(services, call.path["task_id"])))


async def page(services: Services, call: Call[None, SpecListQuery]) -> Response:
    """List tasks, newest first."""
    query = call.query
    chosen = _filter(query)
    total = await services.run(services.ops.total(chosen))
    tasks = await _slice(services, chosen, query.offset, query.limit)
    shown = [_shown(task) for task in tasks]
    return Response(SpecPage(shown, total.count, query.limit, query.offset))


async def _slice(services: Services, chosen: Filter, offset: int, limit: int) -> list[Task]:
    """Return `limit` tasks after the first `offset` ones."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        wanted = min(limits.PAGE, offset + limit - len(ids))
        found = await services.run(services.ops.find(chosen, wanted, cursor))
        ids += found.task_ids
        cursor = found.cursor
        if cursor is None or len(ids) >= offset + limit:
            break
    tasks = await services.run(services.ops.get(ids[offset:]))
    return [task for task in tasks if task is not None]


async def replay(services: Services, call: Call[None, None]) -> Response:
    """Run a failed task again, at once and with all its attempts."""
    task_id = task_id_of(call.path["task_id"])
    (answer,) = await services.run(services.ops.replay([task_id], among=_FAILED))
    if answer.state is None:
        raise TaskNotFound
    if not answer.applied:
        raise WrongState(f"Only a failed task can be tried again; it is {answer.state}.")
    return Response(SpecRetried(task_id, "pending", 0, None))


async def cancel(services: Services, call: Call[None, None]) -> Response:
    """Cancel a task that has not ended."""
    task_id = task_id_of(call.path["task_id"])
    (answer,) = await services.run(services.ops.cancel([task_id]))
    if answer.state is None:
        raise TaskNotFound
    if not answer.applied:
        raise WrongState(f"Only a task that has not ended can be cancelled; it is {answer.state}.")
    return Response(_shown(await get_task(services, task_id)))


async def delete(services: Services, call: Call[None, None]) -> Response:
    """Delete a task that has ended."""
    task_id = task_id_of(call.path["task_id"])
    (answer,) = await services.run(services.ops.delete([task_id], among=_DELETABLE))
    if answer.state is None:
        raise TaskNotFound
    if not answer.applied:
        raise WrongState(f"Only a task that has ended can be deleted; it is {answer.state}.")
    return Response(status=204)


async def stats(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Count the tasks in each status."""
    return Response(spec.stats_of(await from_facts(services, stats_of)))


async def pause(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Pause everything: start no more tasks."""
    controls = await services.run(services.ops.pause(paused=True))
    return Response(SpecPaused(controls.everything.paused))


async def resume(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Resume everything: start tasks again."""
    controls = await services.run(services.ops.pause(paused=False))
    return Response(SpecPaused(controls.everything.paused))


async def limit_rate(services: Services, call: Call[SpecRate, None]) -> Response:
    """Set how many tasks may start in a second."""
    op = services.ops.limit(None, rate=call.body.tasks_per_second)
    controls = await services.run(op)
    return Response(SpecRate(controls.everything.rate))


async def clean_up(services: Services, call: Call[None, SpecCleanup]) -> Response:
    """Delete tasks that completed before a time."""
    chosen = new_filter(status=State.COMPLETED, ended_before=call.query.older_than)
    deleted, cursor = 0, None
    while True:
        swept = await services.run(services.ops.delete_where(chosen, cursor))
        deleted += swept.applied
        cursor = swept.cursor
        if cursor is None:
            return Response(SpecDeleted(deleted))


def _filter(query: SpecListQuery) -> Filter:
    states: set[State] = set()
    for status in query.status:
        found = {state for state, name in spec.STATUS.items() if name == status}
        if not found:
            known = ", ".join(dict.fromkeys(spec.STATUS.values()))
            raise HttpError(f"A status is one of {known}.", details={"field": "status"})
        states |= found
    type = None if isinstance(query.type, msgspec.UnsetType) else query.type
    return new_filter(status=states or None, type=type)


def _shown(task: Task) -> spec.SpecTask:
    return msgspec.structs.replace(
        spec.task_of(task),
        payload=spec.unwrapped_json(task.payload),
        result=None if task.result is None else msgspec.Raw(task.result),
    )


def _operation(method: str, path: str, handler: Any, **more: Any) -> Operation:
    return Operation(method, f"/api/tasks{path}", handler, invalid=400, **more)


OPERATIONS: Final = [
    _operation(
        "POST",
        "",
        create,
        scopes=SUBMIT,
        bound=SUBMIT,
        body=SpecRequest,
        returns=SpecAccepted,
        status=201,
    ),
    _operation("GET", "", page, scopes=READ, bound=READ, query=SpecListQuery, returns=SpecPage),
    _operation(
        "DELETE",
        "",
        clean_up,
        scopes=ADMIN,
        bound=SUBMIT,
        query=SpecCleanup,
        returns=SpecDeleted,
        action=Action.DELETE,
    ),
    _operation("GET", "/stats", stats, scopes=READ, returns=spec.QueueStats),
    _operation("POST", "/pause", pause, scopes=ADMIN, returns=SpecPaused, action=Action.PAUSE),
    _operation("POST", "/resume", resume, scopes=ADMIN, returns=SpecPaused, action=Action.RESUME),
    _operation(
        "POST",
        "/rate-limit",
        limit_rate,
        scopes=ADMIN,
        body=SpecRate,
        returns=SpecRate,
        action=Action.LIMIT,
    ),
    _operation("GET", "/{task_id}", show, scopes=OWN, bound=OWN, returns=spec.SpecTask),
    _operation(
        "DELETE", "/{task_id}", delete, scopes=ADMIN, bound=SUBMIT, status=204, action=Action.DELETE
    ),
    _operation(
        "POST",
        "/{task_id}/retry",
        replay,
        scopes=ADMIN,
        bound=SUBMIT,
        returns=SpecRetried,
        action=Action.REPLAY,
    ),
    _operation(
        "POST",
        "/{task_id}/cancel",
        cancel,
        scopes=ADMIN,
        bound=SUBMIT,
        returns=spec.SpecTask,
        action=Action.CANCEL,
    ),
]
