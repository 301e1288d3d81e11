"""What became of tasks goes back to the store, in natural batches.

A flush begins as soon as the one before has returned, with whatever has gathered: low latency when
idle, large batches under load, no timers. What cannot be delivered is kept and tried again for
ever: a lost connection is not an outcome.
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
from fairlane.core.machine import Outcome, Settlement
from fairlane.core.model import Claimed, Report, Start, Verdict
from fairlane.runtime.execution import refused, settlement_of
from fairlane.telemetry.observer import Observer

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
    ) -> None:
        self._backend = backend
        self._worker_id = worker_id
        self._settled = settled
        self._observer = observer
        self._settlements: list[Settlement] = []
        self._ended: list[Claimed] = []
        """What the settlements are of, in their order."""
        self._begun: list[tuple[Claimed, float]] = []
        self._reports: dict[tuple[str, int], Report] = {}
        self._reports_due = False
        self._guard = threading.Lock()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stale = 0
        """Settlements that were refused: the task was no longer this worker's."""

    def settle(self, task: Claimed, outcome: Outcome, seconds: float | None) -> None:
        """A run has ended after so long; without `seconds` it never began."""
        self._settlements.append(settlement_of(task, outcome, seconds))
        self._ended.append(task)
        if self._reports:
            self._reports_due = True  # its last one has to be there before it ends
        self._stir()

    def start(self, begun: list[tuple[Claimed, float]]) -> None:
        """These have been running for so many seconds."""
        self._begun += begun
        self._stir()

    def report(self, report: Report) -> None:
        """Progress, from any thread; of several reports of one run only the last is sent.

        It is sent when `send_reports` says so, or a run ends: a handler that reports in a tight
        loop must not keep the store busy.
        """
        with self._guard:
            self._reports[report.task_id, report.attempt] = report

    def send_reports(self) -> None:
        if self._reports:
            self._reports_due = True
            self._stir()

    async def flushed(self) -> None:
        """Wait until everything is delivered."""
        await self._idle.wait()

    async def run(self) -> None:
        """Deliver, until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            while self._settlements or self._begun or self._reports_due:
                await self._flush()
            self._idle.set()

    def _stir(self) -> None:
        self._idle.clear()
        self._work.set()

    async def _flush(self) -> None:
        ops = self._backend.ops
        # Ends come last: what comes after its own end is refused.
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
            since = 0 if self._observer is None else self._observer.now()
            verdicts = await self._deliver(
                batch, ops.settle, lambda *one: _failed(batch, tasks, *one)
            )
            if self._observer is not None:
                self._observer.settled(tasks, batch, verdicts, since)
            self._settled(len(batch))
            late = sum(verdict is not Verdict.APPLIED for verdict in verdicts)
            if late:
                self.stale += late
                logger.info("%d results came too late and were refused", late)

    def _take_reports(self) -> list[Report]:
        with self._guard:
            keys = list(self._reports)[: limits.BATCH]
            self._reports_due = len(keys) < len(self._reports)
            return [self._reports.pop(key) for key in keys]

    async def _deliver(
        self,
        items: list[Item],
        send: Callable[[list[Item]], Op[list[Verdict]]],
        instead: Callable[[Item, Exception], Item] | None = None,
    ) -> list[Verdict]:
        """What the store says to each. `instead`: what is sent in place of one that it refuses for
        good; without that, such a one is dropped."""
        backoff = Backoff()
        while True:
            try:
                return await self._backend.run(send(items))
            except StoreError as error:
                logger.warning("The store does not take what became of tasks: %s", error)
                await asyncio.sleep(backoff.next())
            except Exception as error:
                if len(items) > 1:
                    # One of them is at fault: find out which, the others must not suffer for it.
                    half = len(items) // 2
                    first = await self._deliver(items[:half], send, instead)
                    return first + await self._deliver(items[half:], send, instead)
                # Not what it is: that may be anything.
                logger.exception("The store refuses for good what became of %s", items[0].task_id)
                if instead is None:
                    return []
                return await self._deliver([instead(items[0], error)], send)


def _failed(
    batch: list[Settlement], tasks: list[Claimed], settlement: Settlement, error: Exception
) -> Settlement:
    """In place of one of a batch that the store refuses: or the task would be held for ever."""
    place = batch.index(settlement)
    batch[place] = settlement_of(tasks[place], refused(error), settlement.seconds)
    return batch[place]


def _cut(items: list[T]) -> list[T]:
    """As many from its beginning as go into one call."""
    batch = items[: limits.BATCH]
    del items[: limits.BATCH]
    return batch
