"""One type of 001's task queue: what is said of it, and who runs it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import datetime
from typing import Any, Self

import msgspec

from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.edges.crew import Crew
from fairlane.edges.threads import LoopThread
from fairlane.runtime.task import TaskFunction, Terms
from fairlane.wire import spec
from fairlane.worker.config import Config

Handler = Callable[[Any], Any]
"""Takes the payload and returns the result, at once or awaited."""


class Settings(msgspec.Struct, frozen=True):
    """What holds for all types of a queue. Times are seconds."""

    poll_interval: float
    task_timeout: float | None
    enable_worker: bool


class TaskTypeContext:
    """A type; every call answers the same context, so that calls can be chained."""

    def __init__(self, type: str, app: Fairlane, thread: LoopThread, settings: Settings) -> None:
        self._type = type
        self._settings = settings
        self._timeout = settings.task_timeout
        self._count = 1
        self._app = app
        self._crew = Crew(app, thread)

    @property
    def task(self) -> TaskFunction[..., Any] | None:
        """The handler as the core knows it."""
        return self._app.tasks.get(self._type)

    def add(
        self,
        payload: Any,
        *,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
    ) -> Self:
        """Store a task with any JSON as its payload."""
        self.enqueue(payload, max_attempts, run_after)
        return self

    def enqueue(
        self,
        payload: Any,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
        priority: str | int | None = None,
    ) -> str:
        """Store a task; answers its id."""
        task = spec.new_spec_task(
            self._type,
            payload,
            max_attempts=max_attempts,
            run_after=run_after,
            timeout=self._timeout,
            priority=priority,
        )
        (accepted,) = self._app.run_sync(self._app.backend.ops.submit([task]))
        return accepted.task_id

    def set_worker(self, handler: Handler) -> Self:
        """From now on this function runs the tasks of the type, here."""
        call = _unwrapping(handler)
        self._app.tasks[self._type] = TaskFunction(self._app, call, self._type, Terms(), {})
        self._staff()
        return self

    def set_worker_count(self, count: int) -> Self:
        """How many tasks of the type run at once in this process."""
        Config(concurrency=count)  # refuses what cannot be
        self._count = count
        self._staff()
        return self

    def set_rate_limit(self, tasks_per_second: float) -> Self:
        """How many tasks of the type begin in a second, all workers together; 0: unlimited."""
        self._app.run_sync(self._app.backend.ops.limit(self._type, rate=tasks_per_second))
        return self

    def set_timeout(self, seconds: float | None) -> Self:
        """How long a task may run that is added from now on."""
        self._timeout = seconds
        return self

    async def dismiss(self) -> None:
        """Send the workers home."""
        await self._crew.dismiss()

    def _staff(self) -> None:
        if self._settings.enable_worker and self.task is not None:
            # What runs may finish, and no task runs longer than its time limit.
            grace = limits.TIMEOUT_SECONDS if self._timeout is None else self._timeout
            self._crew.resize(
                Config(
                    concurrency=self._count,
                    poll_interval=self._settings.poll_interval,
                    grace=grace,
                    types=frozenset({self._type}),
                )
            )


def opened(app: Fairlane) -> Fairlane:
    """The application, with its store opened and prepared: one that cannot be used is told now."""
    app.run_sync(app.backend.ops.controls())
    return app


def _unwrapping(handler: Handler) -> Callable[..., Any]:
    """The handler as one that takes what the core stores."""
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 (an object may be called like a function)
    ):

        async def call(**payload: Any) -> Any:
            return await handler(spec.unwrapped(payload))

        return call

    def call_blocking(**payload: Any) -> Any:
        result = handler(spec.unwrapped(payload))
        # A lambda cannot be async, but it can call what is.
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    return call_blocking
