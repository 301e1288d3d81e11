"""`/api/v1/workflows`: a workflow goes on from what failed, or is deleted."""

from __future__ import annotations

from typing import Final

from fairlane.core.audit import Action
from fairlane.server.operations import ADMIN, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.routes.workflows import found_workflow
from fairlane.server.services import Services
from fairlane.wire.changes import SweptView, changes_of
from fairlane.wire.workflow_changes import ResumeTerms


async def resume(services: Services, call: Call[ResumeTerms, None]) -> Response:
    """Run the tasks of a workflow again that failed, died or were cancelled; those that depend on
    them wait for them again. Completed ones keep their results, except the one named by `from` and
    all that depend on it. Nothing to resume: `matched` is 0."""
    found = await found_workflow(services, call.path["workflow_id"])
    op = services.ops.resume_workflow(found.workflow_id, from_node=call.body.from_node)
    return Response(changes_of(await services.run(op)))


async def delete(services: Services, call: Call[None, None]) -> Response:
    """Delete the tasks of a workflow that has ended."""
    found = await found_workflow(services, call.path["workflow_id"])
    return Response(changes_of(await services.run(services.ops.delete_workflow(found.workflow_id))))


OPERATIONS: Final = [
    Operation(
        "POST",
        "/api/v1/workflows/{workflow_id}/resume",
        resume,
        ADMIN,
        SUBMIT,
        body=ResumeTerms,
        optional_body=True,
        returns=SweptView,
        action=Action.REPLAY,
    ),
    Operation(
        "DELETE",
        "/api/v1/workflows/{workflow_id}",
        delete,
        ADMIN,
        SUBMIT,
        returns=SweptView,
        action=Action.DELETE,
    ),
]
