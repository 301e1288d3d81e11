"""Events about whole workflows. The store keeps the last ones: see `workflow_ends`."""

from __future__ import annotations

import msgspec

from fairlane.core.documents import Place
from fairlane.core.model import moment
from fairlane.core.workflow_watch import WorkflowEnd, WorkflowNews, WorkflowStart
from fairlane.core.workflows import WorkflowState
from fairlane.server.stream.items import Item
from fairlane.wire.events import EventType, LiveEvent
from fairlane.wire.times import iso

_TYPES = {
    WorkflowState.COMPLETED: EventType.WORKFLOW_COMPLETED,
    WorkflowState.FAILED: EventType.WORKFLOW_FAILED,
    WorkflowState.CANCELLED: EventType.WORKFLOW_CANCELLED,
}


class WorkflowData(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that was submitted, or has ended, with its name and its number of tasks."""

    workflow_id: str
    name: str | None
    tasks: int


class WorkflowFeed:
    """Follows the submissions and ends of one store."""

    def __init__(self) -> None:
        self._ends: int | None = None
        self._newest: Place | None = None

    def forget(self) -> None:
        """Begin again: what happens until the next call of `take` is not followed."""
        self._ends = self._newest = None

    def take(self, news: WorkflowNews) -> list[Item]:
        """Return what is new since the last call; nothing the first time.

        The store tells the last hundred ends and the last twenty submissions. Of more than that in
        between, the others are left out; and so is a submission whose transaction took longer than
        that of a later one.
        """
        ends, self._ends = self._ends, news.ends.number
        newest = self._newest
        self._newest = max((each.place for each in news.started), default=newest or (0, ""))
        if ends is None or newest is None:
            return []
        return [
            *(_started(each) for each in news.started if each.place > newest),
            *(_ended(each) for each in news.ends.recent if each.number > ends),
        ]


def _started(each: WorkflowStart) -> Item:
    data = WorkflowData(workflow_id=each.workflow_id, name=each.name, tasks=each.tasks)
    return _item(EventType.WORKFLOW_SUBMITTED, each.at, data)


def _ended(each: WorkflowEnd) -> Item:
    data = WorkflowData(workflow_id=each.workflow_id, name=each.name, tasks=each.tasks)
    return _item(_TYPES[each.state], each.at, data)


def _item(type: EventType, at: int, data: WorkflowData) -> Item:
    return Item(LiveEvent(type=type.value, timestamp=iso(moment(at)), data=data))
