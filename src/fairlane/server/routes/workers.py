"""`/api/v1/workers`: reading and draining workers."""

from __future__ import annotations

from typing import Final

from fairlane.core.audit import Action
from fairlane.core.model import WorkerStatus
from fairlane.core.text import is_name
from fairlane.server.errors import WorkerNotFound
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.wire.workers import WorkerList, WorkerState, WorkerView, worker_of, workers_of


async def list_workers(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """List workers. Dead ones are listed until they are removed."""
    return Response(workers_of(await services.run(services.ops.workers())))


async def get_worker(services: Services, call: Call[None, None]) -> Response:
    """Read a worker."""
    worker_id = call.path["worker_id"]
    for worker in await services.run(services.ops.workers()):
        if worker.worker_id == worker_id:
            return Response(worker_of(worker))
    raise WorkerNotFound


async def drain(services: Services, call: Call[None, None]) -> Response:
    """Drain a worker: let it finish its tasks and stop."""
    worker_id = call.path["worker_id"]
    draining = WorkerStatus.DRAINING
    if not is_name(worker_id) or not await services.run(services.ops.mark(worker_id, draining)):
        raise WorkerNotFound("There is no worker with this id, or it is dead.")
    return Response(WorkerState(worker_id, draining))


OPERATIONS: Final = [
    Operation("GET", "/api/v1/workers", list_workers, READ, returns=WorkerList),
    Operation("GET", "/api/v1/workers/{worker_id}", get_worker, READ, returns=WorkerView),
    Operation(
        "POST",
        "/api/v1/workers/{worker_id}/drain",
        drain,
        ADMIN,
        returns=WorkerState,
        action=Action.DRAIN,
    ),
]
