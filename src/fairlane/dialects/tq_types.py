"""One task type of document 001's queue: its settings, its handler and its workers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

import msgspec

from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.dialects.tq_payloads import encode_payload, payload_reader
from fairlane.dialects.tq_workers import LoopThread, WorkerGroup
from fairlane.runtime.task import TaskFunction, Terms
from fairlane.wire import spec
from fairlane.worker.config import Config

P = TypeVar("P")

Handler = Callable[[P], Any]
"""Takes the payload and returns the result, or a coroutine that does."""


class QueueSettings(msgspec.Struct, frozen=True):
    """QueueSettings for all types of a queue. Times are in seconds."""

    poll_interval: float
    task_timeout: float | None
    enable_worker: bool


class TaskTypeContext(Generic[P]):
    """A task type with payloads of type P. Methods return the context itself, so that calls can be
    chained.

    A payload is any JSON. It may also be a dataclass, a msgspec Struct or a pydantic model if the
    handler's parameter is annotated with it, or the context is `tq[Model]("crawl")`: then the
    handler receives one.
    """

    def __init__(
        self, type: str, app: Fairlane, thread: LoopThread, settings: QueueSettings
    ) -> None:
        self._type = type
        self._settings = settings
        self._timeout = settings.task_timeout
        self._count = 1
        self._app = app
        self._thread = thread
        self._workers = WorkerGroup(app, thread)
        self._payload: object = None
        self.task: TaskFunction[..., Any] | None = None
        """The type's handler as a task of the application."""

    def expect(self, payload: object) -> Self:
        """Set the type of the payloads, for handlers that do not name it."""
        self._payload = payload
        return self

    def add(
        self,
        payload: P,
        *,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
    ) -> Self:
        """Submit a task with any JSON as its payload."""
        self.enqueue(payload, max_attempts, run_after)
        return self

    def enqueue(
        self,
        payload: P,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
        priority: str | int | None = None,
    ) -> str:
        """Submit a task and return its id."""
        task = spec.new_spec_task(
            self._type,
            encode_payload(payload),
            max_attempts=max_attempts,
            run_after=run_after,
            timeout=self._timeout,
            priority=priority,
        )
        (accepted,) = self._app.run_sync(self._app.backend.ops.submit([task]))
        return accepted.task_id

    def set_worker(self, handler: Handler[P]) -> Self:
        """Run the tasks of the type with this function, in this process."""
        call = _unwrapping(handler, payload_reader(self._type, handler, self._payload))
        self.task = TaskFunction(self._app, call, self._type, Terms(), {})
        self._app.tasks[self._type] = self.task
        self._resize()
        return self

    def remove_worker(self) -> Self:
        """Run no more tasks of the type in this process. Tasks that run go on; others wait."""
        if self.task is not None:
            self.task = None
            self._thread.start(self._forget_handler(self._workers.retire()))
        return self

    def set_worker_count(self, count: int) -> Self:
        """Set how many tasks of the type run at once in this process."""
        Config(concurrency=count)  # raises InvalidWorker for an invalid count
        self._count = count
        self._resize()
        return self

    def set_rate_limit(self, tasks_per_second: float) -> Self:
        """Set how many tasks of the type start per second, over all workers; 0 means unlimited."""
        self._app.run_sync(self._app.backend.ops.limit(self._type, rate=tasks_per_second))
        return self

    def set_timeout(self, seconds: float | None) -> Self:
        """Set the time limit of tasks that are added from now on."""
        self._timeout = seconds
        return self

    @property
    def broken(self) -> bool:
        """Whether a worker of the type gave up."""
        return self._workers.broken

    async def stop(self) -> None:
        """Stop the workers of the type."""
        await self._workers.stop()

    async def _forget_handler(self, runs: Iterable[Future[None]]) -> None:
        """Forget the handler when the workers that may still need it have ended."""
        await asyncio.gather(*map(asyncio.wrap_future, runs), return_exceptions=True)
        if self.task is None:  # nobody has set another one meanwhile
            self._app.tasks.pop(self._type, None)

    def _resize(self) -> None:
        if self._settings.enable_worker and self.task is not None:
            # Running tasks may finish: none of them takes longer than its time limit.
            grace = limits.TIMEOUT_SECONDS if self._timeout is None else self._timeout
            self._workers.resize(
                Config(
                    concurrency=self._count,
                    poll_interval=self._settings.poll_interval,
                    grace=grace,
                    types=frozenset({self._type}),
                )
            )


def prepare_store(app: Fairlane) -> Fairlane:
    """Open and prepare the store now, so that one that cannot be used raises here."""
    app.run_sync(app.backend.ops.controls())
    return app


def _unwrapping(handler: Handler[P], read: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a handler that takes the stored payload as keyword arguments."""
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 (an object may be called like a function)
    ):

        async def call(**payload: Any) -> Any:
            return await handler(read(spec.unwrapped(payload)))

        return call

    def call_blocking(**payload: Any) -> Any:
        result = handler(read(spec.unwrapped(payload)))
        # A lambda cannot be async, but it can return a coroutine.
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    return call_blocking
