"""`/api/v1/tasks`: changing tasks, one by its id, or many by id or by filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fairlane.core.audit import Action
from fairlane.core.filters import Filter
from fairlane.core.flow import Op
from fairlane.core.machine import Verb
from fairlane.core.model import Swept
from fairlane.server.answers import Answer
from fairlane.server.changes import applied, level, replayed, swept
from fairlane.server.operations import ADMIN, SUBMIT, Call, Operation
from fairlane.server.services import Services
from fairlane.server.tasks import task_id_of
from fairlane.wire.changes import (
    CancelledView,
    Change,
    ReplayedView,
    SweptView,
    cancelled_of,
    changes_of,
)
from fairlane.wire.filters import ReplayTerms, TaskReplay, TaskSweep

ById = Callable[..., Op[Sequence[Change]]]
ByFilter = Callable[[Filter, str | None], Op[Swept]]


async def cancel_one(services: Services, call: Call[None, None]) -> Answer:
    """Cancel a task. If it runs, its worker is told to stop, and its result is refused."""
    (answer,) = await services.run(services.ops.cancel([task_id_of(call.path["task_id"])]))
    applied(answer, Verb.CANCEL)
    return Answer(cancelled_of(answer))


async def retry_one(services: Services, call: Call[ReplayTerms, None]) -> Answer:
    """Make a task ready again that failed, died, was cancelled, or waits for its time."""
    return await replayed(services, call.path["task_id"], call.body)


async def cancel(services: Services, call: Call[TaskSweep, None]) -> Answer:
    """Cancel what is not over. What runs is told to stop."""
    ops = services.ops
    return await _changed(services, call.body, ops.cancel, ops.cancel_where)


async def retry(services: Services, call: Call[TaskReplay, None]) -> Answer:
    """Make tasks ready again that failed, died, were cancelled, or wait for their time."""
    ops = services.ops
    how: dict[str, Any] = {
        "reset_retry_count": call.body.reset_retry_count,
        "level": level(call.body),
    }
    return await _changed(
        services, call.body, partial(ops.replay, **how), partial(ops.replay_where, **how)
    )


async def delete(services: Services, call: Call[TaskSweep, None]) -> Answer:
    """Delete tasks that have ended. Those that wait to be retried are cancelled first."""
    ops = services.ops
    return await _changed(services, call.body, ops.delete, ops.delete_where)


async def _changed(
    services: Services, which: TaskSweep, by_id: ById, by_filter: ByFilter
) -> Answer:
    named = which.named()
    if named is None:
        return await swept(services, which.chosen(), which.cursor, by_filter)
    return Answer(changes_of(await services.run(by_id(named, among=which.among()))))


ONE: Final = [
    Operation(
        method="DELETE",
        path="/api/v1/tasks/{task_id}",
        handler=cancel_one,
        summary="Cancel a task",
        scopes=SUBMIT,
        returns=CancelledView,
        action=Action.CANCEL,
    ),
    Operation(
        method="POST",
        path="/api/v1/tasks/{task_id}/retry",
        handler=retry_one,
        summary="Retry a task",
        scopes=ADMIN,
        body=ReplayTerms,
        optional_body=True,
        returns=ReplayedView,
        action=Action.REPLAY,
    ),
]

MANY: Final = [
    Operation(
        method="POST",
        path="/api/v1/tasks/cancel",
        handler=cancel,
        summary="Cancel many tasks",
        scopes=ADMIN,
        body=TaskSweep,
        returns=SweptView,
        action=Action.CANCEL,
    ),
    Operation(
        method="POST",
        path="/api/v1/tasks/retry",
        handler=retry,
        summary="Retry many tasks",
        scopes=ADMIN,
        body=TaskReplay,
        returns=SweptView,
        action=Action.REPLAY,
    ),
    Operation(
        method="POST",
        path="/api/v1/tasks/delete",
        handler=delete,
        summary="Delete many tasks",
        scopes=ADMIN,
        body=TaskSweep,
        returns=SweptView,
        action=Action.DELETE,
    ),
]
