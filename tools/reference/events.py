"""docs/reference/events.md: the types of events, from `wire/events.py`."""

from __future__ import annotations

import msgspec

from fairlane.server.stream.figures import DepthData, MetricsData
from fairlane.server.stream.skips import SkipData
from fairlane.server.stream.workflows import WorkflowData
from fairlane.wire import events
from fairlane.wire.events import (
    TYPES,
    WORKFLOWS,
    EventType,
    LiveEvent,
    Notice,
    TaskData,
    WorkerData,
)
from tools.reference.code import attribute_docs
from tools.reference.markdown import code, page, sentence, table

_FIGURES: dict[EventType, type[msgspec.Struct]] = {
    EventType.DEPTH: DepthData,
    EventType.METRICS: MetricsData,
    EventType.SKIPPED: SkipData,
    **dict.fromkeys(sorted(WORKFLOWS), WorkflowData),
}


def render() -> str:
    """Return the page."""
    assert _FIGURES.keys() == events.FIGURES
    notices = attribute_docs(Notice)
    return page(
        "Events",
        "What `/ws`, `GET /api/v1/events` and `fairlane events --json` send. How to follow them is "
        "in [Follow what happens](../howto/live-events.md).",
        "## An event",
        _struct(LiveEvent),
        "## Types",
        "The verbs are those of [the states of a task](states.md). An event without verbs is not "
        "in the journal: it is sent about once a second, to clients that subscribe to its type.",
        table(
            ("type", "verbs", "data"),
            [
                (
                    code(type.value),
                    ", ".join(code(str(verb)) for verb, each in TYPES.items() if each is type),
                    code(_data(type).__name__),
                )
                for type in EventType
            ],
        ),
        "## Data",
        *(
            f"### {each.__name__}\n\n{_struct(each)}"
            for each in (TaskData, WorkerData, DepthData, MetricsData, SkipData, WorkflowData)
        ),
        "## Notices",
        "About the stream itself. They have the shape of events.",
        table(
            ("type", "meaning"),
            [
                (
                    code(notice.value),
                    notices.get(notice.name, "A message of the client is refused."),
                )
                for notice in Notice
            ],
        ),
    )


def _data(type: EventType) -> type[msgspec.Struct]:
    if type in _FIGURES:
        return _FIGURES[type]
    return TaskData if type.value.startswith("task.") else WorkerData


def _struct(cls: type[msgspec.Struct]) -> str:
    fields = ", ".join(map(code, cls.__struct_fields__))
    return f"{sentence(cls.__doc__)}\n\nFields: {fields}."
