"""Errors of the dialects, named as their documents name them.

FairlaneError
├── NotInitialised         also a RuntimeError
├── AlreadyInitialised     also a RuntimeError
├── TaskNotFound           also a LookupError
├── TaskExecutionError
└── TaskTimeoutError       also a TimeoutError
"""

from __future__ import annotations

from fairlane.core.errors import FairlaneError


class NotInitialised(FairlaneError, RuntimeError):
    """Call init(…) first, once, when the program starts."""

    code = "not_initialised"


class AlreadyInitialised(FairlaneError, RuntimeError):
    """There is a queue already: `await tq.stop()` before you call init(…) again."""

    code = "already_initialised"


class TaskNotFound(FairlaneError, LookupError):
    """This function is not a task: put @task above its definition."""

    code = "task_not_found"


class TaskExecutionError(FairlaneError):
    """The function cannot be called with these arguments."""

    code = "task_execution_error"


class TaskTimeoutError(FairlaneError, TimeoutError):
    """The task took longer than its time limit."""

    code = "task_timeout"
