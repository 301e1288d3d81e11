"""A run: one task that one consumer executes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any

import msgspec

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


class CurrentRun(msgspec.Struct, eq=False):
    """The worker's view of a run, and what its handler's context uses."""

    task: Claimed
    backend: Backend
    report: Callable[[Report], None]
    """Takes a progress report."""
    consumer: asyncio.Task[None]
    began: float = msgspec.field(default_factory=time.monotonic)
    blocked: float = 0.0
    """For about how many seconds it has blocked the event loop. Written by `LoopWatch`."""
    stop: Stop | None = None
    stopped_at: float = 0.0
    start_reported: bool = False
    given_up: bool = False
    """It ignored its cancellation; its consumer is lost."""
    done: bool = False
    """Its completing transaction has settled it."""

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
            self.report(Report(self.task.task_id, self.task.attempt, percent, message))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return completing_transaction(self.backend, self)
