"""What a handler can know and do about its run."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar, overload

from fairlane.core import limits
from fairlane.core.model import Claimed, moment
from fairlane.core.zones import zone_of
from fairlane.runtime.application import Application
from fairlane.runtime.calls import Handle
from fairlane.runtime.shapes import Prepared, Shape
from fairlane.runtime.workflows import WorkflowHandle

R = TypeVar("R")


class Run(Protocol):
    """The worker's side of a run. `progress` and `cancelled` can be used from any thread."""

    @property
    def task(self) -> Claimed:
        """The task."""

    @property
    def cancelled(self) -> bool:
        """Whether the task is no longer this worker's: cancelled, timed out, or lost."""

    def progress(self, percent: float | None, message: str | None) -> None:
        """Report progress."""

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Return a transaction that completes the task when it commits."""


class Context:
    """Passed to a handler whose first parameter has this type.

    @app.task()
    async def work(ctx: Context, n: int) -> int: ...
    """

    __slots__ = ("_app", "_run", "logger", "shared", "task")

    def __init__(
        self, run: Run, app: Application, shared: Mapping[str, Any], logger: logging.Logger
    ) -> None:
        self._run = run
        self._app = app
        self.task = run.task
        """The task as it was claimed."""
        self.shared = shared
        """What the application's lifespans provide."""
        self.logger = logger

    @property
    def task_id(self) -> str:
        return self.task.task_id

    @property
    def attempt(self) -> int:
        """1 for the first run, and one more for each further run. With the task's id it is the
        fencing token."""
        return self.task.attempt

    @property
    def scheduled_for(self) -> datetime | None:
        """The tick that a schedule submitted the task for, in the schedule's time zone. None if no
        schedule did."""
        spec = self.task.spec
        if spec.tick is None:
            return None
        return moment(spec.tick).astimezone(zone_of(spec.zone or "UTC"))

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the store would refuse the result of this run."""
        return self._run.cancelled

    def progress(self, percent: float | None = None, message: str | None = None) -> None:
        """Report progress. Returns at once; reports are sent in batches.

        A percentage outside 0 to 100 is clamped, a long message is cut.
        """
        self._run.progress(_percentage(percent), _line(message))

    @overload
    async def submit(self, call: Prepared[R]) -> Handle[R]: ...
    @overload
    async def submit(self, call: Shape[R]) -> WorkflowHandle[R]: ...
    async def submit(self, call: Prepared[Any] | Shape[Any]) -> Any:
        """Submit a prepared call, or several as a workflow, as part of this task's trace."""
        return await self._app.submit(call.within(self.task))

    @overload
    def submit_sync(self, call: Prepared[R]) -> Handle[R]: ...
    @overload
    def submit_sync(self, call: Shape[R]) -> WorkflowHandle[R]: ...
    def submit_sync(self, call: Prepared[Any] | Shape[Any]) -> Any:
        """Blocking twin of `submit`."""
        return self._app.submit_sync(call.within(self.task))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Return the completing transaction (PostgreSQL and SQLite): what is written on its
        connection and the task's completion are committed together or not at all.

            async with ctx.transaction() as connection: ...
        """
        return self._run.transaction()


def _percentage(percent: float | None) -> float | None:
    if percent is None:
        return None
    if not math.isfinite(percent):
        raise ValueError(f"Progress is a number from 0 to 100, not {percent}.")
    return min(max(percent, 0), 100)


def _line(message: str | None) -> str | None:
    if message is None:
        return None
    text = str(message)[: limits.PROGRESS_CHARACTERS]
    # Lone surrogates have no UTF-8 form: shown as escapes, as in the messages of errors.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
