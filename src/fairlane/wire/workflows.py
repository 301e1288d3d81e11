"""Workflows in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.model import OnFailure
from fairlane.core.states import State
from fairlane.core.workflow_list import (
    WorkflowFilter,
    WorkflowPage,
    WorkflowSummary,
    new_workflow_filter,
)
from fairlane.core.workflows import Workflow, WorkflowNode, WorkflowState
from fairlane.wire.times import Moment, iso, iso_or_none, time_of
from fairlane.wire.values import NodeName


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a workflow. `parents`: the tasks that it depends on; `error`: the message of its
    error; `doomed`: it never ran, because one of its parents did not complete; `answers`: its
    result is the workflow's, or one of those of which the workflow's is a list; `on_exit`: it runs
    when all others have ended, whatever became of them."""

    task_id: str
    name: str
    task_type: str
    status: State
    parents: tuple[str, ...]
    on_parent_failure: OnParentFailure
    error: str | None
    doomed: bool
    answers: bool
    on_exit: bool
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
            on_exit=node.on_exit,
            started_at=iso_or_none(node.started_at),
            ended_at=iso_or_none(node.ended_at),
        )


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow and its tasks, those first that can run first. `complete`: none of its tasks has
    been deleted."""

    workflow_id: str
    name: str | None
    status: WorkflowState
    on_failure: OnFailure
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
            on_failure=workflow.on_failure,
            complete=workflow.complete,
            created_at=iso(workflow.created_at),
            ended_at=iso_or_none(workflow.ended_at),
            tasks=tuple(map(NodeView.of, workflow.nodes)),
        )


class WorkflowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which workflows, and which page of them. A repeated `state` matches any of its values."""

    state: tuple[WorkflowState, ...] = ()
    name: NodeName | msgspec.UnsetType = msgspec.UNSET
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.WORKFLOW_PAGE)] = 50
    cursor: str | None = None

    def chosen(self) -> WorkflowFilter:
        """Return the filter."""
        name = None if isinstance(self.name, msgspec.UnsetType) else self.name
        return new_workflow_filter(self.state or None, name)


class WorkflowSummaryView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow in a list. `tasks`: how many it was submitted with; `counts`: how many of them are
    in which state, without those that were deleted while it ran."""

    workflow_id: str
    name: str | None
    state: WorkflowState
    tasks: int
    counts: Mapping[State, int]
    created_at: Moment
    ended_at: Moment | None

    @classmethod
    def of(cls, found: WorkflowSummary) -> WorkflowSummaryView:
        return cls(
            workflow_id=found.workflow_id,
            name=found.name,
            state=found.state,
            tasks=found.tasks,
            counts=found.counts,
            created_at=iso(found.created_at),
            ended_at=iso_or_none(found.ended_at),
        )

    def summary(self) -> WorkflowSummary:
        """Return the same for the core."""
        return WorkflowSummary(
            workflow_id=self.workflow_id,
            name=self.name,
            state=self.state,
            tasks=self.tasks,
            counts=self.counts,
            created_at=time_of(self.created_at),
            ended_at=None if self.ended_at is None else time_of(self.ended_at),
        )


class WorkflowList(msgspec.Struct, frozen=True):
    """Workflows, newest first, and the cursor of the next page."""

    workflows: tuple[WorkflowSummaryView, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: WorkflowPage) -> WorkflowList:
        return cls(tuple(map(WorkflowSummaryView.of, page.workflows)), page.next_cursor)

    def page(self) -> WorkflowPage:
        """Return the same for the core."""
        return WorkflowPage([each.summary() for each in self.workflows], self.next_cursor)
