"""001's task queue as an object."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fairlane.client.app import Fairlane
from fairlane.core.errors import InvalidStoreURL
from fairlane.edges.batch import hurry, run_batch
from fairlane.edges.threads import LoopThread
from fairlane.edges.types import Handler, Settings, TaskTypeContext, opened
from fairlane.wire import spec
from fairlane.wire.spec import QueueStats, SpecTask

Database = str | os.PathLike[str]


class TaskQueue:
    """Tasks and their handlers, on a SQLite file (`db`) or on any store (`url`).

    Handlers run on a thread of the queue's own: those that are `async` on its event loop, the
    others on threads beside it. With `enable_worker=False` nothing runs but by `process_batch`.
    Times are as 001 has them: `poll_interval` in milliseconds, `task_timeout` in seconds.
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
        self._app = opened(Fairlane(_url(db, url)))
        self._batch_size = batch_size
        self._settings = Settings(poll_interval / 1000, task_timeout, enable_worker)
        self._thread = LoopThread("fairlane-tq")
        self._types: dict[str, TaskTypeContext] = {}

    def type(self, type: str) -> TaskTypeContext:
        """Everything there is to say about one type."""
        known = self._types.get(type)
        if known is None:
            made = TaskTypeContext(type, self._app, self._thread, self._settings)
            known = self._types.setdefault(type, made)  # threads may ask at the same time
        return known

    def register_handler(self, type: str, handler: Handler) -> None:
        """From now on this function runs the tasks of a type."""
        self.type(type).set_worker(handler)

    def enqueue(
        self,
        type: str,
        payload: Any,
        *,
        max_attempts: int = spec.MAX_ATTEMPTS,
        run_after: datetime | None = None,
        priority: str | int | None = None,
    ) -> str:
        """Store a task; answers its id."""
        return self.type(type).enqueue(payload, max_attempts, run_after, priority)

    def get_task(self, task_id: str) -> SpecTask | None:
        """The task as it stands; None when there is none."""
        (task,) = self._app.run_sync(self._app.backend.ops.get([task_id]))
        return None if task is None else spec.task_of(task)

    def stats(self) -> QueueStats:
        """How many tasks there are, by status and by type."""
        return spec.stats_of(self._app.run_sync(self._app.backend.ops.stats()))

    def pause(self) -> None:
        """No worker of this store begins another task. What runs goes on."""
        self._app.run_sync(self._app.backend.ops.pause(paused=True))

    def resume(self) -> None:
        """Workers go on."""
        self._app.run_sync(self._app.backend.ops.pause(paused=False))

    async def process_batch(self) -> int:
        """Run what is ready, one after the other, at most `batch_size`; answers how many.

        Of a queue without a worker also what waits to be tried again: there is nobody to wait.
        """
        return await asyncio.wrap_future(self._thread.begin(self._process_batch()))

    async def stop(self) -> None:
        """Let what runs finish, and let go of everything."""
        types, self._types = self._types, {}
        await asyncio.gather(*(each.dismiss() for each in types.values()))
        await asyncio.wrap_future(self._thread.begin(self._app.aclose()))
        await self._thread.end()

    async def _process_batch(self) -> int:
        tasks = {name: each.task for name, each in self._types.items() if each.task is not None}
        if not self._settings.enable_worker:
            await hurry(self._app, tasks)
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
