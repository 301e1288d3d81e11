"""`/api/v1/workflows`: tasks that were stored together. They are submitted as a batch of tasks."""

from __future__ import annotations

from typing import Final

from fairlane.core.audit import Action
from fairlane.core.ids import is_id
from fairlane.core.workflows import Workflow
from fairlane.server.errors import WorkflowNotFound
from fairlane.server.operations import OWN, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.wire.changes import SweptView, changes_of
from fairlane.wire.workflows import WorkflowView


async def detail(services: Services, call: Call[None, None]) -> Response:
    """Return a workflow with its tasks."""
    return Response(WorkflowView.of(await found_workflow(services, call.path["workflow_id"])))


async def cancel(services: Services, call: Call[None, None]) -> Response:
    """Cancel the tasks of a workflow that have not ended. Workers are asked to stop the ones that
    run."""
    found = await found_workflow(services, call.path["workflow_id"])
    answers = await services.run(services.ops.cancel_workflow(found.workflow_id))
    return Response(changes_of(answers))


async def found_workflow(services: Services, workflow_id: str) -> Workflow:
    """Return a workflow, or answer that there is none."""
    found = await services.run(services.ops.workflow(workflow_id)) if is_id(workflow_id) else None
    if found is None:
        raise WorkflowNotFound
    return found


OPERATIONS: Final = [
    Operation("GET", "/api/v1/workflows/{workflow_id}", detail, OWN, OWN, returns=WorkflowView),
    Operation(
        "POST",
        "/api/v1/workflows/{workflow_id}/cancel",
        cancel,
        SUBMIT,
        SUBMIT,
        returns=SweptView,
        action=Action.CANCEL,
    ),
]
