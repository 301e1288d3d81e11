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
from fairlane.server.operations import ADMIN, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.tasks import check_applied, new_level, replay_task, sweep, task_id_of
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


async def cancel_one(services: Services, call: Call[None, None]) -> Response:
    """Cancel a task. If it runs, its worker is asked to stop, and its result is refused."""
    (answer,) = await services.run(services.ops.cancel([task_id_of(call.path["task_id"])]))
    check_applied(answer, Verb.CANCEL)
    return Response(cancelled_of(answer))


async def replay_one(services: Services, call: Call[ReplayTerms, None]) -> Response:
    """Replay a task: make it ready to run now. For a task that failed, is a dead letter, was
    cancelled, or waits for its time."""
    return await replay_task(services, call.path["task_id"], call.body)


async def cancel(services: Services, call: Call[TaskSweep, None]) -> Response:
    """Cancel tasks that have not ended. Workers are asked to stop the ones that run."""
    ops = services.ops
    return await _change(services, call.body, ops.cancel, ops.cancel_where)


async def replay(services: Services, call: Call[TaskReplay, None]) -> Response:
    """Replay tasks: make them ready to run now. For tasks that failed, are dead letters, were
    cancelled, or wait for their time."""
    ops = services.ops
    how: dict[str, Any] = {
        "reset_retry_count": call.body.reset_retry_count,
        "level": new_level(call.body),
    }
    return await _change(
        services, call.body, partial(ops.replay, **how), partial(ops.replay_where, **how)
    )


async def delete(services: Services, call: Call[TaskSweep, None]) -> Response:
    """Delete tasks that have ended. Those that wait to be retried are cancelled first."""
    ops = services.ops
    return await _change(services, call.body, ops.delete, ops.delete_where)


async def _change(
    services: Services, which: TaskSweep, by_id: ById, by_filter: ByFilter
) -> Response:
    named = which.named()
    if named is None:
        return await sweep(services, which.chosen(), which.cursor, by_filter)
    return Response(changes_of(await services.run(by_id(named, among=which.among()))))


ONE: Final = [
    Operation(
        "DELETE",
        "/api/v1/tasks/{task_id}",
        cancel_one,
        SUBMIT,
        SUBMIT,
        returns=CancelledView,
        action=Action.CANCEL,
    ),
    *(
        Operation(
            "POST",
            f"/api/v1/tasks/{{task_id}}/{name}",
            replay_one,
            ADMIN,
            SUBMIT,
            body=ReplayTerms,
            optional_body=True,
            returns=ReplayedView,
            action=Action.REPLAY,
        )
        for name in ("replay", "retry")
    ),
]

MANY: Final = [
    Operation(
        "POST",
        "/api/v1/tasks/cancel",
        cancel,
        ADMIN,
        SUBMIT,
        body=TaskSweep,
        returns=SweptView,
        action=Action.CANCEL,
    ),
    *(
        Operation(
            "POST",
            f"/api/v1/tasks/{name}",
            replay,
            ADMIN,
            SUBMIT,
            body=TaskReplay,
            returns=SweptView,
            action=Action.REPLAY,
        )
        for name in ("replay", "retry")
    ),
    Operation(
        "POST",
        "/api/v1/tasks/delete",
        delete,
        ADMIN,
        SUBMIT,
        body=TaskSweep,
        returns=SweptView,
        action=Action.DELETE,
    ),
]
