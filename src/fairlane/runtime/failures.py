"""What the caller of a task learns of its failure."""

from __future__ import annotations

import re
from typing import Final

from fairlane.core.errors import TaskFailed
from fairlane.core.model import TaskFields
from fairlane.core.text import as_sentence

SEE_TRACEBACK: Final = "See its traceback with `fairlane status`, or in the worker's log."

_CHAINED: Final = re.compile(
    r"\n\n(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):\n\n"
)
_EXCEPTION: Final = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")


def failure_of(task: TaskFields, what: str | None = None) -> TaskFailed:
    """Return the exception for a task that ended without a result. `what`: how it calls it."""
    error = task.error
    what = what or f"Task {task.task_id}"
    if error is None:  # it was cancelled
        return TaskFailed(
            f"{what} is {task.state}.",
            task_id=task.task_id,
            state=task.state,
            attempt=task.attempt,
        )
    # An error of Fairlane's own has no traceback, and says itself what to do.
    more = f" {SEE_TRACEBACK}" if error.traceback else ""
    return TaskFailed(
        f"{what} is {task.state}: {as_sentence(error.message)}{more}",
        task_id=task.task_id,
        state=task.state,
        attempt=task.attempt,
        error_code=error.code,
        exception_type=exception_type(error.traceback),
        reason=error.reason,
        traceback=error.traceback,
    )


def exception_type(trace: str | None) -> str | None:
    """Return the class of the exception that a traceback ends with, or None if it does not say."""
    if trace is None:
        return None
    lines = iter(_CHAINED.split(trace)[-1].splitlines())
    # The frames are indented. What follows them is the exception, perhaps with several lines.
    line = next((line for line in lines if line and not line.startswith(("Traceback ", " "))), "")
    found = _EXCEPTION.match(line)
    return None if found is None else found[1]
