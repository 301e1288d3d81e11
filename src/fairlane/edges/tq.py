"""001's programming interface: one queue for the whole program, spoken to by `tq`."""

from __future__ import annotations

from fairlane.edges.errors import AlreadyInitialised, NotInitialised
from fairlane.edges.queue import Database, TaskQueue
from fairlane.edges.types import TaskTypeContext
from fairlane.wire import spec
from fairlane.wire.spec import QueueStats


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
        """Say where tasks are kept: call once, when the program starts. See `TaskQueue`."""
        if self._queue is not None:
            raise AlreadyInitialised
        self._queue = TaskQueue(
            db,
            url=url,
            poll_interval=poll_interval,
            batch_size=batch_size,
            task_timeout=task_timeout,
        )

    def __call__(self, type: str) -> TaskTypeContext:
        """One type of task, to add tasks to or to set a worker for."""
        return self._initialised().type(type)

    def pause(self) -> None:
        """No worker begins another task. What runs goes on."""
        self._initialised().pause()

    def resume(self) -> None:
        """Workers go on."""
        self._initialised().resume()

    def stats(self) -> QueueStats:
        """How many tasks there are, by status and by type."""
        return self._initialised().stats()

    async def stop(self) -> None:
        """Let what runs finish, and let go of everything. `init` may be called again then."""
        queue = self._initialised()
        await queue.stop()
        self._queue = None

    def _initialised(self) -> TaskQueue:
        if self._queue is None:
            raise NotInitialised('tq is not initialised: call tq.init(db="tasks.db") first.')
        return self._queue


tq = TQ()
