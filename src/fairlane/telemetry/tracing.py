"""Traces, if the program has set up OpenTelemetry.

This imports nothing to find out: a program that has set it up has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

from fairlane.core.model import NewTask

if TYPE_CHECKING:
    from fairlane.telemetry.spans import Spans


def spans() -> Spans | None:
    """Return what makes spans, or None if the program has not set up tracing."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    return _configured()()


@cache
def _configured() -> Callable[[], Spans | None]:
    from fairlane.telemetry.spans import configured  # noqa: PLC0415 (needs an extra)

    return configured


def submitting(tasks: Sequence[NewTask]) -> AbstractContextManager[Sequence[NewTask]]:
    """Return a context manager for a submission. It yields the tasks with their trace."""
    found = spans()
    return nullcontext(tasks) if found is None else found.sending(tasks)
