"""Run tasks without a worker, for tests.

Tasks are stored, claimed and settled as usual, on the application's store.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from fairlane.client.parent_results import ParentResults
from fairlane.client.schedule_clock import MOST_TICKS, fire
from fairlane.core.backend import Backend
from fairlane.core.facts import Facts
from fairlane.core.flow import perform_async
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewWorker, Report
from fairlane.core.outcomes import TimedOut
from fairlane.runtime.execution import (
    Lifespan,
    Middleware,
    Surroundings,
    enter_lifespans,
    execute,
    settlement_of,
)
from fairlane.runtime.task import TaskFunction
from fairlane.runtime.transaction import completing_transaction

MOST_RUNS = 1_000
"""The most runs of one call of `work`, besides those of ticks: a task could snooze for ever."""


class Inline:
    """Runs due tasks one after the other."""

    def __init__(
        self,
        backend: Backend,
        tasks: Mapping[str, TaskFunction[..., Any]],
        lifespans: Sequence[Lifespan],
        middleware: Sequence[Middleware],
        load: Callable[[str, bytes], Awaitable[bytes]],
    ) -> None:
        self._backend = backend
        self._tasks = tasks
        self._lifespans = lifespans
        self._middleware = middleware
        self._load = load

    async def work(self, within: float = 0.0) -> int:
        """Run due tasks and return the number of runs.

        The store's clock moves on by `within` seconds: from one due time to the next, so that
        delayed tasks, retries and the tasks of schedules run when they are due. Without end
        (`math.inf`) it stops with the last delayed task or retry: schedules never end.
        """
        run, ops = self._backend.run, self._backend.ops
        ticks = 0
        worker = NewWorker(new_id(), types=frozenset(self._tasks))
        async with AsyncExitStack() as stack:
            shared = await enter_lifespans(self._lifespans, self._tasks.values(), stack)
            parents = ParentResults(self._backend).of
            around = Surroundings(shared, self._middleware, _on_thread, self._load, parents)
            worker_id = await run(ops.register(worker))
            ended = runs = 0
            while runs < MOST_RUNS:
                able = _capabilities(await run(ops.facts()))
                ask = Ask(worker_id, new_id(), 1, types=worker.types, capabilities=able)
                grant = await run(ops.claim(ask))
                for task in grant.tasks:
                    await self._run(task, around)
                    runs += not _is_of_tick(task)
                    ended += 1
                if grant.tasks:
                    continue
                tick = await run(ops.due_schedules()) if ticks < MOST_TICKS else None
                if tick is not None and tick <= 0:
                    ticks += 1
                    await perform_async(fire(ops), run)
                    continue
                step = _step(grant.next_due_in, tick, within)
                if step is None:
                    break
                await run(ops.shift_clock(step))
                within = max(within - step, 0.0)
            if 0 < within < math.inf:
                await run(ops.shift_clock(within))
            await run(ops.forget(worker_id))
        return ended

    async def _run(self, task: Claimed, around: Surroundings) -> None:
        this = InlineRun(task, self._backend)
        async with asyncio.timeout(task.timeout) as limit:
            outcome = await execute(self._tasks[task.type], this, around)
        if limit.expired():
            outcome = TimedOut()
        elif (current := asyncio.current_task()) is not None and current.cancelling():
            raise asyncio.CancelledError  # this coroutine was cancelled, not the handler
        if not this.done:
            settlement = settlement_of(task, outcome, time.monotonic() - this.began)
            await self._backend.run(self._backend.ops.settle([settlement]))


class InlineRun:
    """An inline run as its handler sees it."""

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
        return completing_transaction(self._backend, self)


def _is_of_tick(task: Claimed) -> bool:
    """Return whether this is the first run of a schedule's task: those end with the time."""
    return task.spec.tick is not None and task.attempt == 1


def _step(due: float | None, tick: float | None, within: float) -> float | None:
    """Return how far the clock moves to the next task or tick. None: not at all."""
    if due is None and within == math.inf:
        return None
    waits = [wait for wait in (due, tick) if wait is not None and wait <= within]
    return max(min(waits), 0.001) if waits else None


def _capabilities(facts: Facts) -> frozenset[str]:
    """Return everything that a task in the store may require: a test has no other machines."""
    return frozenset(name for lane in facts.lanes.values() for name in lane.capabilities)


async def _on_thread(_type: str, call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(call)


def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end from blocking code, even if this thread has a running loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
