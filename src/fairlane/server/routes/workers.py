"""`/api/v1/workers`: looking at workers, and sending them home."""

from __future__ import annotations

from typing import Final

from fairlane.core.audit import Action
from fairlane.core.model import WorkerStatus
from fairlane.core.text import is_name
from fairlane.server.answers import Answer
from fairlane.server.errors import WorkerNotFound
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.services import Services
from fairlane.wire.workers import WorkerList, WorkerState, WorkerView, worker_of, workers_of


async def listed(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """All workers, the dead ones included until they are cleared away."""
    return Answer(workers_of(await services.run(services.ops.workers())))


async def one(services: Services, call: Call[None, None]) -> Answer:
    """A worker."""
    worker_id = call.path["worker_id"]
    for worker in await services.run(services.ops.workers()):
        if worker.worker_id == worker_id:
            return Answer(worker_of(worker))
    raise WorkerNotFound


async def drain(services: Services, call: Call[None, None]) -> Answer:
    """Let a worker finish what it runs, and leave."""
    worker_id = call.path["worker_id"]
    draining = WorkerStatus.DRAINING
    if not is_name(worker_id) or not await services.run(services.ops.mark(worker_id, draining)):
        raise WorkerNotFound("There is no worker with this id, or it is dead.")
    return Answer(WorkerState(worker_id, draining))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/workers",
        handler=listed,
        summary="List workers",
        scopes=READ,
        returns=WorkerList,
    ),
    Operation(
        method="GET",
        path="/api/v1/workers/{worker_id}",
        handler=one,
        summary="Look at a worker",
        scopes=READ,
        returns=WorkerView,
    ),
    Operation(
        method="POST",
        path="/api/v1/workers/{worker_id}/drain",
        handler=drain,
        summary="Drain a worker",
        scopes=ADMIN,
        returns=WorkerState,
        action=Action.DRAIN,
    ),
]
