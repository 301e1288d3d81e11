"""Document 001's programming interface: `TaskQueue`, and `tq`, one queue for the whole program."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fairlane.client.app import Fairlane
from fairlane.core.errors import InvalidStoreURL
from fairlane.dialects.errors import AlreadyInitialised, NotInitialised
from fairlane.dialects.tq_batch import hurry_retries, run_batch
from fairlane.dialects.tq_types import Handler, P, QueueSettings, TaskTypeContext, prepare_store
from fairlane.dialects.tq_workers import LoopThread
from fairlane.wire import spec
from fairlane.wire.spec import QueueStats, SpecTask

Database = str | os.PathLike[str]

APPLICATION = "tq"
"""The name of the application behind it."""


class TaskQueue:
    """Tasks and their handlers, on a SQLite file (`db`) or on any store (`url`).

    Async handlers run on an event loop in a thread of the queue's own, other handlers on further
    threads. With `enable_worker=False` tasks run only in `process_batch`. As in document 001,
    `poll_interval` is in milliseconds and `task_timeout` in seconds.
    """

    def __init__(
        self,
        db: Database | None = None,
        *,
        url: str | None = None,
        poll_interval: float = 1000,
        batch_size: int = 10,
        enable_worker: bool = True,
        task_timeout: float | None = spec.TASK_TIMEOUT,
    ) -> None:
        self._app = prepare_store(Fairlane(_url(db, url), name=APPLICATION))
        self._batch_size = batch_size
        self._settings = QueueSettings(poll_interval / 1000, task_timeout, enable_worker)
        self._thread = LoopThread("fairlane-tq")
        self._types: dict[str, TaskTypeContext[Any]] = {}
        self._stopped = False

    def type(self, type: str) -> TaskTypeContext[Any]:
        """Return the context of one type, on which its worker and limits are set."""
        known = self._types.get(type)
        if known is None:
            made = TaskTypeContext[Any](type, self._app, self._thread, self._settings)
            known = self._types.setdefault(type, made)  # threads may ask at the same time
        return known

    def register_handler(self, type: str, handler: Handler[Any]) -> None:
        """Run the tasks of a type with this function."""
        self.type(type).set_worker(handler)

    def unregister_handler(self, type: str) -> None:
        """Run no more tasks of a type here. Tasks that run go on; others wait for a handler."""
        self.type(type).remove_worker()

    def enqueue(
        self,
        type: str,
        payload: Any,
        *,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
        priority: str | int | None = None,
    ) -> str:
        """Submit a task and return its id."""
        return self.type(type).enqueue(payload, max_attempts, run_after, priority)

    def get_task(self, task_id: str) -> SpecTask | None:
        """Return the task, or None if there is none."""
        (task,) = self._app.run_sync(self._app.backend.ops.get([task_id]))
        return None if task is None else spec.task_of(task)

    def stats(self) -> QueueStats:
        """Return the number of tasks by status and by type."""
        return spec.stats_of(self._app.run_sync(self._app.backend.ops.stats()))

    def application(self) -> Fairlane:
        """Return the application behind it, for what this interface does not have: schedules,
        for example. Its tasks are the types that have a handler here."""
        return self._app

    def pause(self) -> None:
        """Let no worker of this store start another task. Tasks that run go on."""
        self._app.run_sync(self._app.backend.ops.pause(paused=True))

    def resume(self) -> None:
        """Let workers start tasks again."""
        self._app.run_sync(self._app.backend.ops.pause(paused=False))

    def is_running(self) -> bool:
        """Return whether tasks run in this process as they come: not after `stop`, with
        `enable_worker=False`, or once a worker has given up (its reason is logged)."""
        broken = any(each.broken for each in self._types.values())
        return self._settings.enable_worker and not self._stopped and not broken

    def is_paused(self) -> bool:
        """Return whether the workers of this store start no tasks, here or elsewhere."""
        return self._app.run_sync(self._app.backend.ops.controls()).everything.paused

    async def process_batch(self) -> int:
        """Run up to `batch_size` ready tasks, one after the other, and return how many ran.

        With `enable_worker=False` retries run at once instead of waiting for their delay.
        """
        return await asyncio.wrap_future(self._thread.start(self._process_batch()))

    async def stop(self) -> None:
        """Let running tasks finish, and close everything."""
        self._stopped = True
        types, self._types = self._types, {}
        await asyncio.gather(*(each.stop() for each in types.values()))
        await asyncio.wrap_future(self._thread.start(self._app.aclose()))
        await self._thread.stop()

    async def _process_batch(self) -> int:
        tasks = {name: each.task for name, each in self._types.items() if each.task is not None}
        if not self._settings.enable_worker:
            await hurry_retries(self._app, tasks)
        return await run_batch(self._app, tasks, self._batch_size)


def _url(db: Database | None, url: str | None) -> str:
    if url is not None and db is None:
        return url
    if db is not None and url is None:
        path = os.fspath(db)
        return "sqlite://" if path == ":memory:" else f"sqlite:///{quote(path)}"
    raise InvalidStoreURL(
        'Give either db="tasks.db", a SQLite file (":memory:" for none), or url="…", a store '
        "URL such as postgresql://… or redis://…."
    )


class TQ:
    """The program's task queue: `tq.init(db="tasks.db")`, then `tq("crawl").add({…})`."""

    def __init__(self) -> None:
        self._queue: TaskQueue | None = None

    def init(
        self,
        db: Database | None = None,
        *,
        url: str | None = None,
        poll_interval: float = 1000,
        batch_size: int = 10,
        task_timeout: float | None = spec.TASK_TIMEOUT,
    ) -> None:
        """Open the queue. Call it once, when the program starts. See `TaskQueue`."""
        if self._queue is not None:
            raise AlreadyInitialised
        self._queue = TaskQueue(
            db,
            url=url,
            poll_interval=poll_interval,
            batch_size=batch_size,
            task_timeout=task_timeout,
        )

    def __call__(self, type: str) -> TaskTypeContext[Any]:
        """Return the context of one type, to add tasks or to set a worker."""
        return self._initialised().type(type)

    def __getitem__(self, payload: type[P]) -> Callable[[str], TaskTypeContext[P]]:
        """`tq[Payload]("crawl")`: the context of a type whose payloads type checkers know."""

        def typed(type: str) -> TaskTypeContext[P]:
            return self(type).expect(payload)

        return typed

    def register_handler(self, type: str, handler: Handler[Any]) -> None:
        """Run the tasks of a type with this function."""
        self._initialised().register_handler(type, handler)

    def unregister_handler(self, type: str) -> None:
        """Run no more tasks of a type here. Tasks that run go on; others wait for a handler."""
        self._initialised().unregister_handler(type)

    def is_running(self) -> bool:
        """Return whether tasks run in this process as they come: between `init` and `stop`, unless
        a worker has given up."""
        return self._queue is not None and self._queue.is_running()

    def is_paused(self) -> bool:
        """Return whether the workers of this store start no tasks, here or elsewhere."""
        return self._initialised().is_paused()

    def application(self) -> Fairlane:
        """Return the application behind it. See `TaskQueue.application`."""
        return self._initialised().application()

    def pause(self) -> None:
        """Let no worker start another task. Tasks that run go on."""
        self._initialised().pause()

    def resume(self) -> None:
        """Let workers start tasks again."""
        self._initialised().resume()

    def stats(self) -> QueueStats:
        """Return the number of tasks by status and by type."""
        return self._initialised().stats()

    async def stop(self) -> None:
        """Let running tasks finish, and close everything. `init` can be called again afterwards."""
        queue = self._initialised()
        await queue.stop()
        self._queue = None

    def _initialised(self) -> TaskQueue:
        if self._queue is None:
            raise NotInitialised('tq is not initialised: call tq.init(db="tasks.db") first.')
        return self._queue


tq = TQ()
