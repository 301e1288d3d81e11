"""submit_workflow, workflow_page: workflows of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlane.core.flow import Flow, reads, writes
from fairlane.core.model import Accepted, NewTask
from fairlane.core.workflow_list import ALL, WorkflowFilter, WorkflowPage, check_limit
from fairlane.core.workflow_records import new_record
from fairlane.engines.http.calls import get
from fairlane.engines.http.submit import send
from fairlane.wire.workflows import WorkflowList

WORKFLOWS: Final = "/api/v1/workflows"


@writes
def submit_workflow(_: object, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    new_record(tasks)
    # The server sees that it is a whole workflow, and records it.
    return (yield from send(tasks))


@reads
def workflow_page(
    _: object, filter: WorkflowFilter = ALL, limit: int = 50, cursor: str | None = None
) -> Flow[WorkflowPage]:
    check_limit(limit)
    if filter.states is not None and not filter.states:
        return WorkflowPage([], None)
    query: dict[str, Any] = {"limit": limit}
    if filter.states is not None:
        query["state"] = sorted(filter.states)
    if filter.name is not None:
        query["name"] = filter.name
    if cursor is not None:
        query["cursor"] = cursor
    return (yield from get(WORKFLOWS, WorkflowList, query)).page()
