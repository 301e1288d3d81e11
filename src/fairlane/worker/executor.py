"""Consumers: each takes a task, runs its handler, and passes the outcome to the committer.

Consumers are pooled coroutines: a new coroutine would cost a small task more than the task itself.
One sweep checks all time limits, because a timer for each task would cost as much.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fairlane.core.backend import Backend
from fairlane.core.holdings import Run
from fairlane.core.model import Claimed
from fairlane.core.outcomes import Failed, Outcome, Released, TimedOut
from fairlane.runtime.execution import Surroundings, execute, prepared, raised
from fairlane.runtime.task import TaskFunction
from fairlane.telemetry.observer import Observer
from fairlane.worker.buffer import Buffer
from fairlane.worker.committer import Committer
from fairlane.worker.forks import Origin, end_copy
from fairlane.worker.loop_watch import warn_of_end
from fairlane.worker.processes import Processes
from fairlane.worker.runs import CurrentRun, Stop

logger = logging.getLogger("fairlane.worker")

SWEEP_SECONDS = 0.1
START_REPORTED_AFTER = 1.0
"""The start of a run that takes longer is reported by itself; otherwise with its end."""
HEED_SECONDS = 1.0
"""How long a handler may take to react to its cancellation before it is abandoned."""


class Executor:
    """Runs the tasks in a buffer with the handlers of an application."""

    def __init__(
        self,
        tasks: Mapping[str, TaskFunction[..., Any]],
        around: Surroundings,
        processes: Processes,
        backend: Backend,
        buffer: Buffer,
        committer: Committer,
        observer: Observer | None = None,
    ) -> None:
        self._tasks = tasks
        self._around = around
        self._processes = processes
        self._backend = backend
        self._buffer = buffer
        self._committer = committer
        self._observer = observer
        self._traces = observer if observer is not None and observer.traces else None
        self._running: dict[Run, CurrentRun] = {}
        self._consumers: set[asyncio.Task[None]] = set()
        self._dismissed = False
        self._origin = Origin()
        self._quiet = asyncio.Event()
        """Set when the last run ends; `idle` clears it."""
        self.long = 0
        """How many runs had taken longer than a second in the last sweep."""

    @property
    def load(self) -> int:
        """How many tasks are running."""
        return len(self._running)

    def runs(self) -> tuple[frozenset[Run], frozenset[Run]]:
        """Return what is running, and apart from it what a completing transaction has settled."""
        done = frozenset(key for key, run in self._running.items() if run.done)
        return frozenset(self._running) - done, done

    def types(self) -> list[str]:
        """Return the types of the tasks that are running."""
        return [run.task.type for run in self._running.values()]

    def current(self) -> list[CurrentRun]:
        """Return what is running. From any thread."""
        return list(self._running.values())

    def longest(self, otherwise: float) -> float:
        """Return for how many seconds the run with the most time left may go on; `otherwise` if a
        run has no time limit. From any thread."""
        now, longest = time.monotonic(), 0.0
        for run in self.current():
            limit = run.task.timeout
            left = otherwise if limit is None else limit - (now - run.began)
            longest = max(longest, left)
        return longest

    def add_consumers(self, count: int) -> None:
        """Start this many consumers."""
        for _ in range(count):
            consumer = asyncio.create_task(self._consume(), context=contextvars.Context())
            self._consumers.add(consumer)
            consumer.add_done_callback(self._gone)

    def let_go(self, runs: list[Run]) -> None:
        """End these runs, (task id, attempt), whether they have started or not."""
        for each in runs:
            run = self._running.get(each)
            if run is not None:
                run.halt(Stop.LET_GO)
        for task in self._buffer.withdraw(runs):
            self._committer.settle(task, Released(), None)

    async def idle(self) -> None:
        """Wait until nothing runs."""
        while self._running:
            self._quiet.clear()
            await self._quiet.wait()

    async def release(self) -> None:
        """End all runs. Their tasks go back to their queues."""
        for run in self.current():
            run.halt(Stop.RELEASED)
        with suppress(TimeoutError):
            async with asyncio.timeout(HEED_SECONDS):
                await self.idle()
        for run in self.current():
            self._give_up(run)

    async def dismiss(self) -> None:
        """End all consumers and their runs, without settling them."""
        self._dismissed = True
        for run in self._running.values():
            run.halt(Stop.LET_GO)
        consumers = list(self._consumers)
        for consumer in consumers:
            consumer.cancel()
        if consumers:
            await asyncio.wait(consumers, timeout=HEED_SECONDS)

    async def sweep(self) -> None:
        """Enforce time limits and report the start of long runs, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._committer.send_reports()
            self._sweep(time.monotonic())

    def _sweep(self, now: float) -> None:
        begun = []
        long = 0
        for run in self.current():
            seconds, limit = now - run.began, run.task.timeout
            if run.stop is None:
                if limit is not None and seconds > limit:
                    run.halt(Stop.TIMED_OUT)
            elif now - run.stopped_at > HEED_SECONDS:
                self._give_up(run)
                self.add_consumers(1)
            if seconds > START_REPORTED_AFTER:
                long += 1
                if not run.start_reported:
                    run.start_reported = True
                    begun.append((run.task, seconds))
        self.long = long
        if begun:
            self._committer.start(begun)

    # -- one consumer ------------------------------------------------------------------------------

    async def _consume(self) -> None:
        this = asyncio.current_task()
        assert this is not None
        report, traces = self._committer.report, self._traces
        origin = self._origin
        while True:
            task = await self._buffer.take()
            key = task.task_id, task.attempt
            if key in self._running:
                continue  # a store that lost its last changes has given it a second time
            run = self._running[key] = CurrentRun(task, self._backend, report, this)
            leave = None if traces is None else traces.enter(task)
            definition = self._tasks[task.type]
            if definition.terms.isolation is None:
                outcome = await execute(definition, run, self._around)
                if origin.copied:
                    end_copy(failed=isinstance(outcome, Failed))
            else:
                outcome = await self._execute_in_child(definition, run)
            if leave is not None:
                leave()
            if run.given_up or self._dismissed:
                return
            self._leave(run)
            while this.cancelling():  # the run was cancelled, not the consumer
                this.uncancel()
            self._finish(run, outcome)
            if len(contextvars.copy_context()):
                # The handler has set context variables: the next one gets a clean context.
                self.add_consumers(1)
                return

    async def _execute_in_child(
        self, definition: TaskFunction[..., Any], run: CurrentRun
    ) -> Outcome:
        if not run.task.spec.inputs:
            return await self._processes.execute(run, run.task)
        order = await prepared(definition, run.task, self._around)
        if not isinstance(order, Claimed):
            return order
        return await self._processes.execute(run, order)

    def _gone(self, consumer: asyncio.Task[None]) -> None:
        self._consumers.discard(consumer)
        error = asyncio.CancelledError() if consumer.cancelled() else consumer.exception()
        if self._dismissed or error is None:
            return
        # It ended by an exception that `execute` cannot catch, such as a GeneratorExit in a future.
        for run in [run for run in self._running.values() if run.consumer is consumer]:
            self._leave(run)
            self._finish(run, raised(error, self._tasks[run.task.type].terms))
        self.add_consumers(1)

    def _leave(self, run: CurrentRun) -> None:
        del self._running[run.task.task_id, run.task.attempt]
        if not self._running:
            self._quiet.set()

    def _give_up(self, run: CurrentRun) -> None:
        """Abandon a handler that ignores its cancellation, together with its consumer."""
        logger.warning("%s %s ignores its cancellation", run.task.type, run.task.task_id)
        run.given_up = True
        self._leave(run)
        self._finish(run, Released())

    def _finish(self, run: CurrentRun, outcome: Outcome) -> None:
        if run.blocked:
            warn_of_end(run)
        if run.done:
            # The completing transaction has settled it.
            if isinstance(outcome, Failed):
                logger.warning(
                    "%s %s has completed by its transaction, and raised an error afterwards: %s",
                    run.task.type,
                    run.task.task_id,
                    outcome.error.message,
                )
            if self._observer is not None:
                self._observer.ended(run.task, outcome, settled=True)
            return
        if run.stop is Stop.TIMED_OUT:
            outcome = TimedOut()
        elif run.stop is not None:
            # For a run that was let go the store refuses this, and frees the slot that it held.
            outcome = Released()
        if self._traces is not None:
            self._traces.ended(run.task, outcome, settled=False)
        self._committer.settle(run.task, outcome, run.seconds)
