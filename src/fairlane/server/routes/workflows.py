"""`/api/v1/workflows`: tasks that were stored together."""

from __future__ import annotations

from typing import Final

from fairlane.client import requests
from fairlane.core.audit import Action
from fairlane.core.flow import perform_async
from fairlane.core.ids import is_id
from fairlane.core.workflows import Workflow
from fairlane.server.errors import WorkflowNotFound
from fairlane.server.operations import OWN, READ, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.wire.changes import SweptView, changes_of
from fairlane.wire.workflows import WorkflowList, WorkflowQuery, WorkflowView


async def list_workflows(services: Services, call: Call[None, WorkflowQuery]) -> Response:
    """List workflows, newest first. A page may be short, or even empty, although there are more."""
    query = call.query
    flow = requests.list_workflows(services.ops, query.chosen(), query.limit, query.cursor)
    return Response(WorkflowList.of(await perform_async(flow, services.run)))


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
    Operation(
        "GET",
        "/api/v1/workflows",
        list_workflows,
        READ,
        READ,
        query=WorkflowQuery,
        returns=WorkflowList,
    ),
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
