"""Fairlane: a task queue for Python with priority lanes that never starve."""

__version__ = "0.1.0"

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
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.uniqueness import Unique

__all__ = [
    "GIVEN",
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
