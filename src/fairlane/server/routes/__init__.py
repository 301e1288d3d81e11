"""The route table. What is asked most stands first."""

from __future__ import annotations

from typing import Final

from fairlane.server.operations import Operation
from fairlane.server.routes import (
    audit,
    changes,
    crew,
    dashboard,
    dlq,
    events,
    fleet,
    health,
    internal,
    looking,
    metrics,
    queues,
    session,
    spec,
    stats,
    store,
    tasks,
)
from fairlane.server.routes.about import describing

_TABLE: Final[list[Operation]] = [
    *tasks.OPERATIONS,
    *internal.OPERATIONS,
    *crew.OPERATIONS,
    *changes.MANY,  # ahead of what takes any id
    *looking.OPERATIONS,
    *changes.ONE,
    *stats.OPERATIONS,
    *events.OPERATIONS,
    *queues.OPERATIONS,
    *dlq.OPERATIONS,
    *fleet.OPERATIONS,
    *audit.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    *spec.OPERATIONS,
    *session.OPERATIONS,
    *store.OPERATIONS,
]
OPERATIONS: Final[list[Operation]] = [*_TABLE, *describing(_TABLE), *dashboard.OPERATIONS]
