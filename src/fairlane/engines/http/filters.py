"""Filters as parameters of the API."""

from __future__ import annotations

from typing import Any

from fairlane.core.errors import NotSupported
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.wire.times import iso_of


def admits_nothing(filter: Filter) -> bool:
    """Return whether no task can match. Over HTTP, an empty list would mean no restriction."""
    chosen = (filter.states, filter.types, filter.queues, filter.levels)
    return any(each is not None and not each for each in chosen)


def query_of(filter: Filter) -> dict[str, Any]:
    """Return a filter as parameters of a query."""
    given = _parameters(filter)
    tags = given.pop("tags", None)
    if tags:
        given["tag"] = [f"{name}:{value}" for name, value in tags.items()]
    return given


def body_of(filter: Filter, cursor: str | None) -> dict[str, Any]:
    """Return a filter as the body of a change."""
    body = _parameters(filter)
    if filter == EVERYTHING:
        body["all"] = True
    if cursor is not None:
        body["cursor"] = cursor
    return body


def _parameters(filter: Filter) -> dict[str, Any]:
    if filter.workflow_id is not None:
        raise NotSupported("A server cannot filter tasks by workflow yet.")
    given: dict[str, Any] = {
        "status": None if filter.states is None else sorted(filter.states),
        "type": None if filter.types is None else sorted(filter.types),
        "queue": None if filter.queues is None else sorted(filter.queues),
        "priority": None if filter.levels is None else sorted(filter.levels),
        "tags": dict(filter.tags) or None,
        "worker": filter.worker_id,
        "owner": filter.owner,
        "schedule_id": filter.schedule_id,
    }
    for name in ("since", "until", "ended_before"):
        time = getattr(filter, name)
        given[name] = None if time is None else iso_of(time)
    return {name: value for name, value in given.items() if value is not None}
