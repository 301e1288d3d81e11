"""A run: one task that one consumer executes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any

from fairlane.core.backend import Backend
from fairlane.core.model import Claimed, Report
from fairlane.runtime.transaction import completing_transaction


class Stop(Enum):
    """Why a run was ended before its handler returned."""

    TIMED_OUT = "timed out"
    LET_GO = "let go"
    """The task was cancelled or is no longer this worker's: the outcome is not wanted."""
    RELEASED = "released"
    """The worker shuts down: the task goes back to its queue."""


class CurrentRun:
    """The worker's view of a run, and what its handler's context uses."""

    __slots__ = (
        "_backend",
        "_report",
        "began",
        "blocked",
        "consumer",
        "done",
        "given_up",
        "start_reported",
        "stop",
        "stopped_at",
        "task",
    )

    def __init__(
        self,
        task: Claimed,
        backend: Backend,
        report: Callable[[Report], None],
        consumer: asyncio.Task[None],
    ) -> None:
        self.task = task
        self.began = time.monotonic()
        self.consumer = consumer
        self.blocked = 0.0
        """For about how many seconds it has blocked the event loop. Written by `LoopWatch`."""
        self.stop: Stop | None = None
        self.stopped_at = 0.0
        self.start_reported = False
        self.given_up = False
        """It ignored its cancellation; its consumer is lost."""
        self.done = False
        """Its completing transaction has settled it."""
        self._backend = backend
        self._report = report

    @property
    def cancelled(self) -> bool:
        return self.stop is not None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def halt(self, why: Stop) -> None:
        """Cancel the run. If it was cancelled before, the first reason stays."""
        if self.stop is None:
            self.stop = why
            self.stopped_at = time.monotonic()
            self.consumer.cancel()

    def progress(self, percent: float | None, message: str | None) -> None:
        if self.stop is None:
            self._report(Report(self.task.task_id, self.task.attempt, percent, message))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return completing_transaction(self._backend, self)
