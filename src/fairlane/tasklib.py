"""Document 004's programming interface (see `fairlane.dialects`):

from fairlane.tasklib import Config, init, task, submit_task
"""

from __future__ import annotations

from fairlane.dialects.errors import (
    NotInitialised,
    TaskExecutionError,
    TaskNotFound,
    TaskTimeoutError,
)
from fairlane.dialects.tasklib import TaskWorker, tasklib
from fairlane.dialects.tasklib_tasks import Config, Task

__all__ = [
    "Config",
    "NotInitialised",
    "Task",
    "TaskExecutionError",
    "TaskNotFound",
    "TaskTimeoutError",
    "TaskWorker",
    "aclose",
    "application",
    "close",
    "get_task",
    "init",
    "list_tasks",
    "submit_task",
    "task",
]

init = tasklib.init
aclose = tasklib.aclose
application = tasklib.application
close = tasklib.close
task = tasklib.task
submit_task = tasklib.submit_task
get_task = tasklib.get_task
list_tasks = tasklib.list_tasks
