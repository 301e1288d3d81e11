"""The route table. The busiest routes come first."""

from __future__ import annotations

from typing import Final

from fairlane.server.operations import Operation
from fairlane.server.routes import (
    audit,
    dashboard,
    definitions,
    dlq,
    events,
    health,
    queues,
    schedules,
    session,
    settings,
    spec,
    stats,
    store,
    tasks_change,
    tasks_read,
    tasks_submit,
    worker_protocol,
    worker_protocol_bulk,
    workers,
    workflow_changes,
    workflows,
)
from fairlane.server.routes.about import describe

_TABLE: Final[list[Operation]] = [
    *tasks_submit.OPERATIONS,
    *worker_protocol.OPERATIONS,
    *worker_protocol_bulk.OPERATIONS,
    *tasks_change.MANY,  # before the paths that take any id
    *tasks_read.OPERATIONS,
    *tasks_change.ONE,
    *workflows.OPERATIONS,
    *workflow_changes.OPERATIONS,
    *stats.OPERATIONS,
    *events.OPERATIONS,
    *queues.OPERATIONS,
    *definitions.OPERATIONS,
    *settings.OPERATIONS,
    *schedules.OPERATIONS,
    *dlq.OPERATIONS,
    *workers.OPERATIONS,
    *audit.OPERATIONS,
    *health.OPERATIONS,
    *spec.OPERATIONS,
    *session.OPERATIONS,
    *store.OPERATIONS,
]
OPERATIONS: Final[list[Operation]] = [*_TABLE, *describe(_TABLE), *dashboard.OPERATIONS]
