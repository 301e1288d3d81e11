"""Tasks that run in place, without a worker: for tests.

They are stored, claimed and settled like any others, on whatever store the application has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.machine import TimedOut
from fairlane.core.model import Ask, Claimed, NewTask, NewWorker, Report
from fairlane.runtime.completing import completing
from fairlane.runtime.execution import Middleware, Surroundings, execute, settlement_of
from fairlane.runtime.lifespans import Lifespan, provided
from fairlane.runtime.task import TaskFunction

MOST_RUNS = 1_000
"""So many runs of one call at the most: a task that snoozes for ever would never let go."""


class Inline:
    """Runs what is due, one task after the other."""

    def __init__(
        self,
        backend: Backend,
        tasks: Mapping[str, TaskFunction[..., Any]],
        lifespans: Sequence[Lifespan],
        middleware: Sequence[Middleware],
    ) -> None:
        self._backend = backend
        self._tasks = tasks
        self._lifespans = lifespans
        self._middleware = middleware
        self._capabilities: set[str] = set()

    def learn(self, tasks: Iterable[NewTask]) -> None:
        """Whatever these tasks require, it has."""
        for task in tasks:
            self._capabilities.update(task.capabilities)

    async def work(self, *, skip_time: bool) -> int:
        """Run what is due; answers how many runs that took.

        `skip_time`: what waits for its time (a delay, a retry) is due at once, because the store's
        clock is moved there.
        """
        run, ops = self._backend.run, self._backend.ops
        worker = NewWorker(new_id(), types=frozenset(self._tasks))
        async with AsyncExitStack() as stack:
            shared = await provided(self._lifespans, self._tasks.values(), stack)
            around = Surroundings(shared, self._middleware, asyncio.to_thread)
            worker_id = await run(ops.register(worker))
            runs = 0
            while runs < MOST_RUNS:
                able = frozenset(self._capabilities)
                ask = Ask(worker_id, new_id(), 1, types=worker.types, capabilities=able)
                grant = await run(ops.claim(ask))
                for task in grant.tasks:
                    await self._run(task, around)
                    runs += 1
                if not grant.tasks:
                    if not skip_time or grant.next_due_in is None:
                        break
                    await run(ops.shift_clock(max(grant.next_due_in, 0.001)))
            await run(ops.forget(worker_id))
        return runs

    async def _run(self, task: Claimed, around: Surroundings) -> None:
        this = InlineRun(task, self._backend)
        async with asyncio.timeout(task.timeout) as limit:
            outcome = await execute(self._tasks[task.type], this, around)
        if limit.expired():
            outcome = TimedOut()
        elif (current := asyncio.current_task()) is not None and current.cancelling():
            raise asyncio.CancelledError  # meant for us, not for the handler
        if not this.done:
            settlement = settlement_of(task, outcome, time.monotonic() - this.began)
            await self._backend.run(self._backend.ops.settle([settlement]))


class InlineRun:
    """A run as its handler sees it."""

    cancelled = False

    def __init__(self, task: Claimed, backend: Backend) -> None:
        self.task = task
        self.began = time.monotonic()
        self.done = False
        self._backend = backend

    def progress(self, percent: float | None, message: str | None) -> None:
        report = Report(self.task.task_id, self.task.attempt, percent, message)
        self._backend.run_sync(self._backend.ops.progress(self.task.worker_id, [report]))

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return completing(self._backend, self)


def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end from blocking code, even if this thread has a running loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
