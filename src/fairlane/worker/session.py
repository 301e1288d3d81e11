"""A worker session: what a worker does under one id, from registering to leaving."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

from fairlane.client.app import Fairlane
from fairlane.client.parent_results import ParentResults
from fairlane.core.errors import StoreError, WorkerGone
from fairlane.core.holdings import InHand
from fairlane.core.model import Ask, Claimed, NewWorker, Pulse, WorkerStatus
from fairlane.core.outcomes import Released
from fairlane.maintenance import BlobSweeper, Maintenance, pace_of
from fairlane.runtime.execution import Surroundings
from fairlane.telemetry.failures import FailureLog
from fairlane.telemetry.observer import new_observer
from fairlane.worker.buffer import Buffer
from fairlane.worker.committer import Committer
from fairlane.worker.config import Config
from fairlane.worker.executor import Executor
from fairlane.worker.fetcher import Fetcher, Prefetch
from fairlane.worker.forks import watch_loop
from fairlane.worker.hanging import Hanging
from fairlane.worker.health import Health
from fairlane.worker.heartbeat import Heartbeat
from fairlane.worker.isolation import Isolation
from fairlane.worker.loop_watch import LoopWatch
from fairlane.worker.pacemaker import Pacemaker
from fairlane.worker.processes import Processes
from fairlane.worker.reconciler import Reconciler
from fairlane.worker.runners import Threads
from fairlane.worker.schedules import ScheduleKeeper

logger = logging.getLogger("fairlane.worker")

FLUSH_SECONDS = 10.0
BLOCKED_SECONDS = 3600.0
"""How long a run without a time limit may block the interpreter: then the worker counts as dead."""
IN_MEMORY = frozenset({"sqlite://", "sqlite:///:memory:"})
"""Stores that no other process can reach."""


class SessionEnd(Enum):
    """How a session ended."""

    LEFT = "left"
    """The worker was stopped, or drained by an operator."""
    LOST = "lost"
    """It was declared dead: the worker starts another session."""
    STUCK = "stuck"
    """Too many of its threads hang: only the end of the process can end them."""
    BROKEN = "broken"
    """A part of it failed: the worker starts another session after a pause."""


class WorkerSession:
    """Puts the parts of a worker together and runs them under one id."""

    def __init__(
        self,
        app: Fairlane,
        config: Config,
        worker: NewWorker,
        shared: Mapping[str, Any],
        hanging: Hanging,
        schedules: ScheduleKeeper,
    ) -> None:
        self._backend = backend = app.backend
        self._config = config
        self._worker_id = worker.worker_id
        self._loop = asyncio.get_running_loop()
        self._prefetch = Prefetch()
        self._buffer = Buffer()
        self._threads = Threads(hanging)
        self._processes = Processes(
            config.target,
            app.url,
            config.tasks_per_child,
            app.encryption_keys,
            app.token,
            app.blobs if isinstance(app.blobs, str) else None,
        )
        observer = new_observer()
        self._hanging = hanging
        self._health = Health(config, hanging)
        self._isolation = Isolation(backend, config.breaker) if config.breaker else None
        self._failures = FailureLog()
        self._committer = Committer(
            backend,
            worker.worker_id,
            self._prefetch.finished,
            observer,
            self._isolation,
            self._failures,
        )
        around = Surroundings(
            shared,
            app.middleware,
            self._threads.run,
            app.payload_blobs().read,
            ParentResults(backend).of,
        )
        self._executor = Executor(
            app.tasks, around, self._processes, backend, self._buffer, self._committer, observer
        )
        self._loop_watch = LoopWatch(lambda: self._health.late, self._executor.current)
        self._reconciler = Reconciler(
            backend, worker.worker_id, config.lease, self._in_hand, self._executor.let_go
        )
        self._pacemaker: Pacemaker | None = None
        if config.pacemaker and sys.platform == "linux" and app.url not in IN_MEMORY:
            self._pacemaker = Pacemaker(app, worker.worker_id, config.lease, self._allowance)
        ask = Ask(worker.worker_id, "", 0, 0, worker.types, worker.queues, worker.capabilities)
        self._fetcher = Fetcher(
            backend,
            ask,
            self._buffer,
            self._prefetch,
            config.poll_interval,
            observer,
            self._reconciler.doubt,
            hanging,
            self._allow if self._pacemaker is not None else None,
        )
        self._schedules = schedules
        self._maintenance = Maintenance(backend, worker.worker_id, pace=pace_of(config.lease))
        self._sweeper = None if app.blobs is None else BlobSweeper(app, worker.worker_id)
        self._lost = asyncio.Event()
        self._drained = asyncio.Event()
        self._stuck = asyncio.Event()
        self._leaving = False
        self._reported: tuple[WorkerStatus, frozenset[str]] | None = None
        self._heartbeat = Heartbeat(
            backend,
            worker.worker_id,
            config.lease,
            self._describe,
            self._pulse_soon,
            self._lose_soon,
            self._hurried,
            self._kept_until,
        )

    async def run(self, stopping: asyncio.Event, at_once: asyncio.Event) -> SessionEnd:
        """Work until stopped, drained by an operator, or declared dead."""
        watch_loop()
        self._executor.add_consumers(self._config.concurrency)
        self._heartbeat.start()
        if self._pacemaker is not None:
            self._pacemaker.start()
        fetching = asyncio.create_task(self._fetch())
        self._loop_watch.start()
        background = [fetching, *(asyncio.create_task(work) for work in self._background())]
        reasons = (stopping, self._lost, self._drained, self._stuck)
        ends = [asyncio.create_task(each.wait()) for each in reasons]
        given_up = None
        try:
            try:
                await asyncio.wait([*ends, *background], return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                # The worker is to end now. Its tasks go back to their queues all the same.
                given_up = error
                at_once.set()
            broken = _log_failures(background)
            self._buffer.close()
            await _cancel(fetching)
            if self._lost.is_set():
                logger.warning("Worker %s was declared dead: it registers again", self._worker_id)
                return SessionEnd.LOST
            await self._finish(at_once)
            if given_up is not None:
                raise given_up
            if self._stuck.is_set() and not stopping.is_set():
                return SessionEnd.STUCK
            return SessionEnd.BROKEN if broken else SessionEnd.LEFT
        finally:
            # Outcomes that are not delivered by now are dropped: others may have the tasks already.
            await asyncio.to_thread(self._loop_watch.stop)  # before nobody measures the loop
            for task in (*ends, *background):
                await _cancel(task)
            await self._executor.dismiss()
            self._threads.stop()
            await self._processes.stop()
            await asyncio.to_thread(self._heartbeat.stop)
            if self._pacemaker is not None:
                await asyncio.to_thread(self._pacemaker.stop)

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        works = [
            self._committer.run(),
            self._failures.run(),
            self._executor.sweep(),
            self._health.watch(self._stuck.set),
            self._reconciler.run(),
            self._keep_lease(),
            self._schedules.run(),
        ]
        if self._isolation is not None:
            works.append(self._isolation.watch())
        if self._config.maintenance and not self._backend.driver.remote:
            works.append(self._maintenance.run())
            if self._sweeper is not None:
                works.append(self._sweeper.run())
        return works

    async def _fetch(self) -> None:
        try:
            await self._fetcher.run()
        except WorkerGone:
            self._lost.set()

    async def _keep_lease(self) -> None:
        """Give up the session before others may treat it as dead."""
        while (left := self._heartbeat.left) > 0:  # noqa: ASYNC110 (a clock is no event)
            await asyncio.sleep(left)
        self._lost.set()

    async def _finish(self, at_once: asyncio.Event) -> None:
        """Return tasks that have not started, wait for the others, and deregister."""
        self._leaving = True
        for task in self._buffer.empty():
            self._committer.settle(task, Released(), None)
        grace = asyncio.sleep(self._config.grace)
        await _first(self._executor.idle(), at_once.wait(), self._lost.wait(), grace)
        await self._executor.release()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._committer.flushed()
        try:
            await self._backend.run(self._backend.ops.forget(self._worker_id))
        except StoreError as error:
            logger.warning("The worker could not deregister: %s", error)

    def _in_hand(self) -> InHand:
        running, done = self._executor.runs()
        return InHand(
            running | self._buffer.runs(),
            done | self._committer.runs(),
            self._fetcher.asked,
            self._fetcher.answered,
        )

    def running(self) -> list[str]:
        """Return the types of the tasks that are running."""
        return self._executor.types()

    # -- called by the threads of the heartbeat and of the probe -----------------------------------

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Return whether the worker is healthy, and what a probe is told about it."""
        status = self._status()
        told = {
            "status": status,
            "worker_id": self._worker_id,
            "load": self._executor.load,
            "loop_lag_seconds": round(self._health.lag, 3),
        }
        # A restart would not help a worker that is isolated, and it is over by itself.
        return self._leaving or self._health.status() is not WorkerStatus.UNHEALTHY, told

    def _status(self) -> WorkerStatus:
        if self._leaving:
            return WorkerStatus.DRAINING
        if self._isolation is not None and self._isolation.isolated:
            return WorkerStatus.UNHEALTHY
        return self._health.status()

    def _openness(self) -> tuple[WorkerStatus, frozenset[str]]:
        """Return the worker's status, and the types that it holds back."""
        return self._status(), self._hanging.held

    def _hurried(self) -> bool:
        """Return whether the next heartbeat is urgent: long runs may have been cancelled, what the
        worker takes has changed, or the store may be of another opinion about its tasks."""
        return (
            self._executor.long > 0
            or self._reconciler.pending
            or self._openness() != self._reported
        )

    def _describe(self) -> dict[str, Any]:
        self._reported = self._openness()
        return {
            "load": self._executor.load,
            "status": self._reported[0],
            "health": self._health.report(),
        }

    def _allow(self, tasks: Sequence[Claimed]) -> None:
        assert self._pacemaker is not None
        limits = [task.timeout for task in tasks]
        self._pacemaker.allow(BLOCKED_SECONDS if None in limits else max(filter(None, limits)))

    def _allowance(self) -> float:
        """Return how long the pacemaker may keep the lease without another sign."""
        return max(self._config.lease, self._executor.longest(BLOCKED_SECONDS))

    def _kept_until(self) -> float:
        return 0.0 if self._pacemaker is None else self._pacemaker.kept_until()

    def _pulse_soon(self, pulse: Pulse) -> None:
        self._loop.call_soon_threadsafe(self._pulse, pulse)

    def _lose_soon(self) -> None:
        self._loop.call_soon_threadsafe(self._lost.set)

    def _pulse(self, pulse: Pulse) -> None:
        self._executor.let_go(pulse.let_go)
        self._reconciler.pulse()
        if pulse.status is WorkerStatus.DRAINING:
            self._drained.set()


def _log_failures(background: list[asyncio.Task[None]]) -> bool:
    failed = [task for task in background if task.done() and task.exception() is not None]
    for task in failed:
        logger.critical("A part of the worker failed", exc_info=task.exception())
    return bool(failed)


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait until the first of these is done, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            await _cancel(task)


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
