"""Workflows in JSON."""

from __future__ import annotations

import msgspec

from fairlane.core.dependencies import OnParentFailure
from fairlane.core.states import State
from fairlane.core.workflows import Workflow, WorkflowNode, WorkflowState
from fairlane.wire.times import Moment, iso, iso_or_none


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a workflow. `parents`: the tasks that it depends on; `error`: the message of its
    error; `doomed`: it never ran, because one of its parents did not complete; `answers`: its
    result is the workflow's, or one of those of which the workflow's is a list."""

    task_id: str
    name: str
    task_type: str
    status: State
    parents: tuple[str, ...]
    on_parent_failure: OnParentFailure
    error: str | None
    doomed: bool
    answers: bool
    started_at: Moment | None
    ended_at: Moment | None

    @classmethod
    def of(cls, node: WorkflowNode) -> NodeView:
        return cls(
            task_id=node.task_id,
            name=node.name,
            task_type=node.type,
            status=node.state,
            parents=node.parents,
            on_parent_failure=node.on_parent_failure,
            error=node.error,
            doomed=node.doomed,
            answers=node.answers,
            started_at=iso_or_none(node.started_at),
            ended_at=iso_or_none(node.ended_at),
        )


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow and its tasks, those first that can run first. `complete`: none of its tasks has
    been deleted."""

    workflow_id: str
    name: str | None
    status: WorkflowState
    complete: bool
    created_at: Moment
    ended_at: Moment | None
    tasks: tuple[NodeView, ...]

    @classmethod
    def of(cls, workflow: Workflow) -> WorkflowView:
        return cls(
            workflow_id=workflow.workflow_id,
            name=workflow.name,
            status=workflow.state,
            complete=workflow.complete,
            created_at=iso(workflow.created_at),
            ended_at=iso_or_none(workflow.ended_at),
            tasks=tuple(map(NodeView.of, workflow.nodes)),
        )
