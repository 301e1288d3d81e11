"""`/api/v1/workflows`: tasks that were stored together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlane.client import requests
from fairlane.core import limits
from fairlane.core.audit import Action
from fairlane.core.flow import perform_async
from fairlane.core.ids import checked, is_id, new_run
from fairlane.core.states import State
from fairlane.core.submission import checked_key
from fairlane.core.workflows import Workflow
from fairlane.server.errors import WorkflowNotFound
from fairlane.server.operations import OWN, READ, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.routes.tasks_submit import InvalidBatch, key_of, new_tasks
from fairlane.server.services import Services
from fairlane.server.tasks import submission
from fairlane.wire.changes import SweptView, changes_of
from fairlane.wire.workflow_submission import (
    NodeAccepted,
    PlannedNode,
    WorkflowAccepted,
    WorkflowRequest,
    plan,
)
from fairlane.wire.workflows import WorkflowList, WorkflowQuery, WorkflowView


async def submit(services: Services, call: Call[WorkflowRequest, None]) -> Response:
    """Submit a workflow: up to 999 tasks that take results of each other, all or none. The tasks
    are named, and the server gives them their ids. With the header Idempotency-Key, or with a
    `workflow_id`, a repeated request returns the same workflow."""
    request, key = call.body, key_of(call)
    chosen = request.workflow_id
    workflow_id = new_run(limits.WORKFLOW_NODES) if chosen is None else checked(chosen)
    if key is not None:
        checked_key(key)
        workflow_id = await services.run(services.ops.workflow_id_for(key, workflow_id))
    planned = plan(request, request.take(), workflow_id)
    try:
        made = await new_tasks(services, [each.request for each in planned])
    except InvalidBatch as error:
        raise _named(error, planned) from None
    with submission(call, made) as tasks:
        await services.admit(call.identity, call.address, tasks)
        accepted = await services.run(services.ops.submit_workflow(tasks))
    for task, each in zip(tasks, accepted, strict=True):
        if each.state is State.QUEUED and not each.known:
            services.places.add(task.queue, task.level)
    nodes = tuple(
        NodeAccepted(node.node, each.task_id, each.state)
        for node, each in zip(planned, accepted, strict=True)
    )
    return Response(WorkflowAccepted(workflow_id, nodes), 201)


def _named(error: InvalidBatch, planned: Sequence[PlannedNode]) -> InvalidBatch:
    """Return the error with the names of the tasks in place of their positions."""
    errors = [
        {"node": planned[each["index"]].node, "code": each["code"], "message": each["message"]}
        for each in (error.details or {}).get("errors", [])
    ]
    return InvalidBatch(error.message, details={"errors": errors})


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
    Operation(
        "POST",
        "/api/v1/workflows",
        submit,
        SUBMIT,
        SUBMIT,
        body=WorkflowRequest,
        returns=WorkflowAccepted,
        status=201,
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
