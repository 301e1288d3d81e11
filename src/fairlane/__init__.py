"""Fairlane: a task queue for Python with priority lanes that never starve."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlane import errors as errors
    from fairlane.client.app import Fairlane
    from fairlane.client.memory_store import MemoryStore
    from fairlane.client.schedules import Schedules
    from fairlane.client.testing import MemoryApp
    from fairlane.core.blobs import BlobStore
    from fairlane.core.errors import (
        Conflict,
        DuplicateTask,
        FairlaneError,
        IdempotencyConflict,
        InvalidInput,
        ResultTimeout,
        StoreError,
        StoreUnavailable,
        StoreUnusable,
        TaskFailed,
        TaskIdConflict,
    )
    from fairlane.core.merging import Failed, NodeOutcome
    from fairlane.core.priority import Aging
    from fairlane.core.retention import Retention
    from fairlane.core.retry import RetryPolicy
    from fairlane.core.states import State
    from fairlane.core.uniqueness import Mode, Unique
    from fairlane.runtime.arguments import GIVEN, Shared
    from fairlane.runtime.calls import Handle
    from fairlane.runtime.context import Context
    from fairlane.runtime.graph import Graph
    from fairlane.runtime.outcomes import Fail, Retry, Snooze
    from fairlane.runtime.schedules import Schedule
    from fairlane.runtime.shapes import Prepared, Shape, gather
    from fairlane.runtime.task import TaskFunction
    from fairlane.runtime.tasks import Task
    from fairlane.runtime.workflows import WorkflowHandle
    from fairlane.worker.config import Config
    from fairlane.worker.worker import Worker

__all__ = [
    "GIVEN",
    "Aging",
    "BlobStore",
    "Config",
    "Conflict",
    "Context",
    "DuplicateTask",
    "Fail",
    "Failed",
    "Fairlane",
    "FairlaneError",
    "Graph",
    "Handle",
    "IdempotencyConflict",
    "InvalidInput",
    "MemoryApp",
    "MemoryStore",
    "Mode",
    "NodeOutcome",
    "Prepared",
    "ResultTimeout",
    "Retention",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "Schedules",
    "Shape",
    "Shared",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "StoreUnusable",
    "Task",
    "TaskFailed",
    "TaskFunction",
    "TaskIdConflict",
    "Unique",
    "Worker",
    "WorkflowHandle",
    "__version__",
    "errors",
    "gather",
]

# Each name is imported when it is first used: `fairlane --help` needs none of them.
_HOMES = {
    "Aging": "fairlane.core.priority",
    "BlobStore": "fairlane.core.blobs",
    "Config": "fairlane.worker.config",
    "Conflict": "fairlane.core.errors",
    "Context": "fairlane.runtime.context",
    "DuplicateTask": "fairlane.core.errors",
    "Fail": "fairlane.runtime.outcomes",
    "Failed": "fairlane.core.merging",
    "NodeOutcome": "fairlane.core.merging",
    "Fairlane": "fairlane.client.app",
    "FairlaneError": "fairlane.core.errors",
    "GIVEN": "fairlane.runtime.arguments",
    "Graph": "fairlane.runtime.graph",
    "Handle": "fairlane.runtime.calls",
    "IdempotencyConflict": "fairlane.core.errors",
    "InvalidInput": "fairlane.core.errors",
    "MemoryApp": "fairlane.client.testing",
    "MemoryStore": "fairlane.client.memory_store",
    "Mode": "fairlane.core.uniqueness",
    "Prepared": "fairlane.runtime.shapes",
    "ResultTimeout": "fairlane.core.errors",
    "Retention": "fairlane.core.retention",
    "Retry": "fairlane.runtime.outcomes",
    "RetryPolicy": "fairlane.core.retry",
    "Schedule": "fairlane.runtime.schedules",
    "Schedules": "fairlane.client.schedules",
    "Shape": "fairlane.runtime.shapes",
    "Shared": "fairlane.runtime.arguments",
    "Snooze": "fairlane.runtime.outcomes",
    "State": "fairlane.core.states",
    "StoreError": "fairlane.core.errors",
    "StoreUnavailable": "fairlane.core.errors",
    "StoreUnusable": "fairlane.core.errors",
    "Task": "fairlane.runtime.tasks",
    "TaskFailed": "fairlane.core.errors",
    "TaskFunction": "fairlane.runtime.task",
    "TaskIdConflict": "fairlane.core.errors",
    "Unique": "fairlane.core.uniqueness",
    "Worker": "fairlane.worker.worker",
    "WorkflowHandle": "fairlane.runtime.workflows",
    "gather": "fairlane.runtime.shapes",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        value: Any = import_module("fairlane.errors")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
