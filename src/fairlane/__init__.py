"""Fairlane: a task queue for Python with priority lanes that never starve."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlane.client.app import Fairlane
    from fairlane.client.arguments import GIVEN, Shared
    from fairlane.client.calls import Prepared
    from fairlane.client.context import Context
    from fairlane.client.handle import Handle
    from fairlane.client.outcomes import Fail, Retry, Snooze
    from fairlane.client.task import TaskFunction
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
    )
    from fairlane.core.model import Task
    from fairlane.core.priority import Aging
    from fairlane.core.retry import RetryPolicy
    from fairlane.core.states import State
    from fairlane.core.uniqueness import Unique

__all__ = [
    "GIVEN",
    "Aging",
    "Conflict",
    "Context",
    "DuplicateTask",
    "Fail",
    "Fairlane",
    "FairlaneError",
    "Handle",
    "IdempotencyConflict",
    "InvalidInput",
    "Prepared",
    "ResultTimeout",
    "Retry",
    "RetryPolicy",
    "Shared",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "StoreUnusable",
    "Task",
    "TaskFailed",
    "TaskFunction",
    "Unique",
    "__version__",
]

# Each name is imported when it is first asked for: `fairlane --help` needs none of them.
_HOMES = {
    "Aging": "fairlane.core.priority",
    "Conflict": "fairlane.core.errors",
    "Context": "fairlane.client.context",
    "DuplicateTask": "fairlane.core.errors",
    "Fail": "fairlane.client.outcomes",
    "Fairlane": "fairlane.client.app",
    "FairlaneError": "fairlane.core.errors",
    "GIVEN": "fairlane.client.arguments",
    "Handle": "fairlane.client.handle",
    "IdempotencyConflict": "fairlane.core.errors",
    "InvalidInput": "fairlane.core.errors",
    "Prepared": "fairlane.client.calls",
    "ResultTimeout": "fairlane.core.errors",
    "Retry": "fairlane.client.outcomes",
    "RetryPolicy": "fairlane.core.retry",
    "Shared": "fairlane.client.arguments",
    "Snooze": "fairlane.client.outcomes",
    "State": "fairlane.core.states",
    "StoreError": "fairlane.core.errors",
    "StoreUnavailable": "fairlane.core.errors",
    "StoreUnusable": "fairlane.core.errors",
    "Task": "fairlane.core.model",
    "TaskFailed": "fairlane.core.errors",
    "TaskFunction": "fairlane.client.task",
    "Unique": "fairlane.core.uniqueness",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
