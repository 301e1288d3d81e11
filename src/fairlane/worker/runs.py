"""A run: one task in the hands of one consumer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any

from fairlane.core.backend import Backend
from fairlane.core.model import Claimed, Report
from fairlane.runtime.completing import completing


class Stop(Enum):
    """Why a run was told to end before its handler had returned."""

    TIMED_OUT = "timed out"
    LET_GO = "let go"
    """Cancelled by a user, or no longer ours: nobody wants its outcome."""
    RELEASED = "released"
    """The worker shuts down: the task goes back."""


class CurrentRun:
    """What the worker knows of a run, and what its handler may ask for through its context."""

    __slots__ = (
        "_backend",
        "_report",
        "began",
        "consumer",
        "done",
        "given_up",
        "started_told",
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
        self.stop: Stop | None = None
        self.stopped_at = 0.0
        self.started_told = False
        self.given_up = False
        """It did not end although it was told to; its consumer is lost."""
        self.done = False
        """A completing transaction has told the store of its end."""
        self._backend = backend
        self._report = report

    @property
    def cancelled(self) -> bool:
        return self.stop is not None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def halt(self, why: Stop) -> None:
        """End the run from outside; the first reason counts."""
        if self.stop is None:
            self.stop = why
            self.stopped_at = time.monotonic()
            self.consumer.cancel()

    def progress(self, percent: float | None, message: str | None) -> None:
        if self.stop is None:
            self._report(Report(self.task.task_id, self.task.attempt, percent, message))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return completing(self._backend, self)
