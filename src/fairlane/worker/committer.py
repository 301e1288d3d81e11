"""Sends outcomes, starts and progress to the store, in natural batches.

A flush begins as soon as the one before has returned, with everything that has arrived meanwhile:
low latency when idle, large batches under load, no timers. What cannot be delivered is kept and
sent again for ever: a lost connection is not an outcome.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from fairlane.backoff import Backoff
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreError
from fairlane.core.flow import Op
from fairlane.core.holdings import Run
from fairlane.core.model import Claimed, Report, Start, Verdict
from fairlane.core.outcomes import Outcome
from fairlane.core.settlement import COMPLETED, Settled, Settlement
from fairlane.runtime.execution import refused, settlement_of
from fairlane.telemetry.failures import FailureLog
from fairlane.telemetry.observer import Observer
from fairlane.worker.isolation import Isolation

logger = logging.getLogger("fairlane.worker")

T = TypeVar("T")
Item = TypeVar("Item", Settlement, Start, Report)


class Committer:
    """Settlements, starts and progress on their way to the store."""

    def __init__(
        self,
        backend: Backend,
        worker_id: str,
        settled: Callable[[int], None] = lambda _: None,
        observer: Observer | None = None,
        isolation: Isolation | None = None,
        failures: FailureLog | None = None,
    ) -> None:
        self._backend = backend
        self._worker_id = worker_id
        self._settled = settled
        self._observer = observer
        self._isolation = isolation
        self._failures = FailureLog() if failures is None else failures
        self._settlements: list[Settlement] = []
        self._ended: list[Claimed] = []
        """The tasks of the settlements, in the same order."""
        self._sent: list[Claimed] = []
        """The tasks of settlements that the store has not answered yet."""
        self._begun: list[tuple[Claimed, float]] = []
        self._reports: dict[tuple[str, int], Report] = {}
        self._reports_due = False
        self._guard = threading.Lock()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stale = 0
        """How many settlements the store refused because the task was no longer this worker's."""

    def settle(self, task: Claimed, outcome: Outcome, seconds: float | None) -> None:
        """Settle a run that took `seconds`, or None if it never started."""
        first = not self._settlements
        self._settlements.append(settlement_of(task, outcome, seconds))
        self._ended.append(task)
        if self._reports:
            self._reports_due = True  # its last report must be stored before its end
        if first:  # a flush takes the others, too
            self._wake()

    def runs(self) -> frozenset[Run]:
        """Return the runs whose settlement the store has not confirmed yet."""
        return frozenset((task.task_id, task.attempt) for task in (*self._ended, *self._sent))

    def start(self, begun: list[tuple[Claimed, float]]) -> None:
        """Report the start of runs, with the seconds since then."""
        self._begun += begun
        self._wake()

    def report(self, report: Report) -> None:
        """Keep a progress report, from any thread. It replaces an earlier one of the same run.

        Reports are sent by `send_reports` or when a run ends: a handler that reports in a tight
        loop must not keep the store busy.
        """
        with self._guard:
            self._reports[report.task_id, report.attempt] = report

    def send_reports(self) -> None:
        if self._reports:
            self._reports_due = True
            self._wake()

    async def flushed(self) -> None:
        """Wait until everything is delivered."""
        await self._idle.wait()

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            while self._settlements or self._begun or self._reports_due:
                await self._flush()
            self._idle.set()

    def _wake(self) -> None:
        self._idle.clear()
        self._work.set()

    async def _flush(self) -> None:
        ops = self._backend.ops
        # Settlements come last: the store refuses starts and progress of a settled run.
        if self._begun:
            begun = _cut(self._begun)
            starts = [Start(task.task_id, task.attempt, seconds) for task, seconds in begun]
            await self._deliver(starts, lambda some: ops.start(self._worker_id, some))
            if self._observer is not None:
                self._observer.started([task for task, _ in begun])
        if self._reports_due:
            reports = self._take_reports()
            await self._deliver(reports, lambda some: ops.progress(self._worker_id, some))
        if self._settlements:
            batch, tasks = _cut(self._settlements), _cut(self._ended)
            self._sent = tasks
            since = 0 if self._observer is None else self._observer.now()
            answers = await self._deliver(
                batch, ops.settle, lambda *one: _failed(batch, tasks, *one)
            )
            self._sent = []
            if self._observer is not None:
                self._observer.settled(tasks, batch, answers, since)
            if self._isolation is not None:
                self._isolation.settled(tasks, answers)
            self._settled(len(batch))
            if answers.count(COMPLETED) < len(batch):  # one comparison for each task, in C
                self._look_through(tasks, batch, answers)

    def _look_through(
        self, tasks: list[Claimed], batch: list[Settlement], answers: list[Settled]
    ) -> None:
        """Log the runs that failed, and count those whose end came too late."""
        if len(answers) == len(batch):  # without an answer nothing says which one is missing
            self._failures.log(tasks, batch, answers)
        late = sum(answer.verdict is not Verdict.APPLIED for answer in answers)
        if late:
            self.stale += late
            logger.info("The store refused %d results that came too late", late)

    def _take_reports(self) -> list[Report]:
        with self._guard:
            keys = list(self._reports)[: limits.BATCH]
            self._reports_due = len(keys) < len(self._reports)
            return [self._reports.pop(key) for key in keys]

    async def _deliver(
        self,
        items: list[Item],
        send: Callable[[list[Item]], Op[list[T]]],
        instead: Callable[[Item, Exception], Item] | None = None,
    ) -> list[T]:
        """Send items until the store accepts them, and return its answer to each.

        `instead` returns what is sent in place of an item that the store refuses for good; without
        it such an item is dropped.
        """
        backoff = Backoff()
        while True:
            try:
                return await self._backend.run(send(items))
            except StoreError as error:
                logger.warning("Cannot report outcomes to the store: %s", error)
                await asyncio.sleep(backoff.next())
            except Exception as error:
                if len(items) > 1:
                    # One item is at fault. Find it by halving, and deliver the others.
                    half = len(items) // 2
                    first = await self._deliver(items[:half], send, instead)
                    return first + await self._deliver(items[half:], send, instead)
                # Without the item itself, which may contain anything.
                logger.exception("The store refuses the outcome of %s for good", items[0].task_id)
                if instead is None:
                    return []
                return await self._deliver([instead(items[0], error)], send)


def _failed(
    batch: list[Settlement], tasks: list[Claimed], settlement: Settlement, error: Exception
) -> Settlement:
    """Replace a refused settlement by a failure, or the worker would hold the task for ever."""
    place = batch.index(settlement)
    batch[place] = settlement_of(tasks[place], refused(error), settlement.seconds)
    return batch[place]


def _cut(items: list[T]) -> list[T]:
    """Remove and return the first items, as many as one call takes."""
    batch = items[: limits.BATCH]
    del items[: limits.BATCH]
    return batch
