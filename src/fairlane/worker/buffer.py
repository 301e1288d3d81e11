"""Claimed tasks on their way from the fetcher to the consumers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from fairlane.core.holdings import Run
from fairlane.core.model import Claimed


class Buffer:
    """A queue. Consumers wait while it is empty, the fetcher while it is full."""

    def __init__(self) -> None:
        self._tasks: deque[Claimed] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._taken = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def idle(self) -> int:
        """How many consumers wait for a task."""
        return len(self._takers)

    def put(self, tasks: Iterable[Claimed]) -> None:
        self._tasks.extend(tasks)
        if self._closed:
            return
        for _ in range(min(len(self._tasks), len(self._takers))):
            self._wake_one()

    async def take(self) -> Claimed:
        """Wait for the next task and remove it."""
        while self._closed or not self._tasks:
            turn = asyncio.get_running_loop().create_future()
            self._takers.append(turn)
            self._taken.set()  # the fetcher waits for idle consumers, too
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_one()  # pass the turn on to another consumer
                raise
            finally:
                if turn in self._takers:
                    self._takers.remove(turn)
        self._taken.set()
        return self._tasks.popleft()

    def close(self) -> None:
        """Hand out no more tasks."""
        self._closed = True

    def empty(self) -> list[Claimed]:
        """Remove and return all tasks."""
        tasks = list(self._tasks)
        self._tasks.clear()
        return tasks

    def runs(self) -> frozenset[Run]:
        """Return the runs that wait here."""
        return frozenset((task.task_id, task.attempt) for task in self._tasks)

    def withdraw(self, runs: Iterable[tuple[str, int]]) -> list[Claimed]:
        """Remove and return those of these runs, (task id, attempt), that wait here."""
        wanted = set(runs)
        found = [task for task in self._tasks if (task.task_id, task.attempt) in wanted]
        for task in found:
            self._tasks.remove(task)
        return found

    async def changed(self) -> None:
        """Wait until a task was taken or a consumer is idle."""
        await self._taken.wait()
        self._taken.clear()

    def _wake_one(self) -> None:
        while self._takers:
            turn = self._takers.popleft()
            if not turn.done():
                turn.set_result(None)
                return
