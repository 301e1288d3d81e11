"""`Worker`: runs an application's tasks until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from fairlane.backoff import Backoff
from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.errors import (
    AccessDenied,
    InvalidInput,
    NotSupported,
    StoreError,
    StoreUnusable,
    WorkerStuck,
)
from fairlane.core.flow import Op
from fairlane.runtime.execution import enter_lifespans
from fairlane.worker.config import Config
from fairlane.worker.hanging import Hanging
from fairlane.worker.loading import Tasks, check_keys, check_processes, select_tasks
from fairlane.worker.probe import Probe
from fairlane.worker.schedules import ScheduleKeeper
from fairlane.worker.session import SessionEnd, WorkerSession

logger = logging.getLogger("fairlane.worker")

T = TypeVar("T")


class Worker:
    """Runs an application's tasks until it is stopped.

    A worker that was declared dead while it was suspended or cut off drops its tasks and starts
    another session under a new id.
    """

    def __init__(
        self,
        app: Fairlane,
        config: Config = Config(),  # noqa: B008
        ready: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._config = config
        self._ready = ready
        """Called whenever the store has accepted it as a worker."""
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._hanging = Hanging()
        self._schedules = ScheduleKeeper(app)
        self._known = False
        """Whether the store has accepted it as a worker before."""
        self._session: WorkerSession | None = None

    def stop(self) -> None:
        """Claim no more tasks and let running ones finish. A second call stops at once."""
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()

    def running(self) -> list[str]:
        """Return the types of the tasks that are running."""
        return [] if self._session is None else self._session.running()

    async def run(self, *, signals: bool = True) -> None:
        """Run tasks until stopped or drained by an operator. `signals`: SIGTERM and SIGINT stop it.

        Raises StoreUnusable if the store can never be used, EncryptionRequired if the application
        has no encryption keys for it, InvalidHandler or InvalidWorker if the
        application cannot be run with this configuration, and WorkerStuck if too many handlers
        hang in threads: it has left then, and the process should end.
        """
        loop = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        try:
            await self._work()
        finally:
            if signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.remove_signal_handler(number)

    async def _work(self) -> None:
        tasks = select_tasks(self._app, self._config.types)
        check_processes(tasks, self._config.target)
        self._app.payload_blobs()  # raises DriverMissing before the store knows of this worker
        async with AsyncExitStack() as stack:
            if self._config.health_port is not None:
                probe = Probe(self._config.health_host, self._config.health_port, self._report)
                stack.callback(probe.close)
            shared = await enter_lifespans(self._app.lifespans, tasks.values(), stack)
            with suppress(_Stopped):
                await self._run_patiently(self._app.backend.ops.verify(), unusable=StoreUnusable)
                await check_keys(self._app, self._run_patiently)
                backoff = Backoff()
                while not self._stopping.is_set():
                    # Before every session: the store may have been emptied and made again.
                    await self._declare_limits(tasks)
                    end = await self._run_session(tasks, shared)
                    if end is SessionEnd.LEFT:
                        return
                    if end is SessionEnd.STUCK:
                        raise WorkerStuck
                    if end is SessionEnd.BROKEN:
                        await self._pause(backoff.next())

    async def _publish(self, tasks: Tasks) -> None:
        """Publish what the code says about its tasks, for submitters without that code."""
        definitions = [task.definition() for task in tasks.values()]
        ops = self._app.backend.ops
        try:
            for at in range(0, len(definitions), limits.BATCH):
                op = ops.publish(definitions[at : at + limits.BATCH])
                await self._run_patiently(op, unusable=(AccessDenied, NotSupported))
        except (AccessDenied, NotSupported, InvalidInput) as error:
            logger.warning("Cannot publish the definitions of the tasks: %s", error)

    async def _declare_limits(self, tasks: Tasks) -> None:
        """Set the limits that the code declares, unless the type has limits already."""
        ops = self._app.backend.ops
        if not self._app.backend.driver.remote:
            self._app.backend.has_tokens |= bool(await self._run_patiently(ops.tokens()))
        limited = [
            task for task in tasks.values() if task.terms.rate_limit or task.terms.concurrency
        ]
        if not limited:
            return
        try:
            known = (await self._run_patiently(ops.controls(), unusable=AccessDenied)).types
            for task in limited:
                if task.name not in known:
                    rate, most = task.terms.rate_limit, task.terms.concurrency
                    op = ops.limit(task.name, rate=rate, concurrency=most)
                    await self._run_patiently(op, unusable=AccessDenied)
        except AccessDenied as error:
            logger.warning("Cannot set the limits that the code declares: %s", error)

    async def _run_patiently(
        self, op: Op[T], unusable: type[StoreError] | tuple[type[StoreError], ...] = ()
    ) -> T:
        """Perform an operation, and wait as long as the store is away or until the worker stops."""
        backoff = Backoff()
        while True:
            try:
                return await self._app.run(op)
            except unusable:
                raise
            except StoreError as error:
                logger.warning("The store is unavailable: %s", error)
            await self._pause(backoff.next())
            if self._stopping.is_set():
                raise _Stopped

    async def _pause(self, seconds: float) -> None:
        """Sleep, but no longer than until the worker is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _run_session(self, tasks: Tasks, shared: Mapping[str, Any]) -> SessionEnd:
        """Register, and run one session."""
        new = self._config.new_worker(frozenset(tasks))
        # A token that is not for workers is an error at once; one that is revoked later may return.
        refused = () if self._known else AccessDenied
        self._app.backend.driver.serve_worker(new.worker_id, new.lease)
        op = self._app.backend.ops.register(new)
        worker_id = await self._run_patiently(op, unusable=refused)
        self._known = True
        await self._publish(tasks)
        await self._schedules.declare(
            partial(self._run_patiently, unusable=(AccessDenied, NotSupported))
        )
        if self._ready is not None:
            self._ready()
        logger.info("Worker %s is ready for %s", worker_id, ", ".join(tasks))
        worker = msgspec.structs.replace(new, worker_id=worker_id)
        self._session = session = WorkerSession(
            self._app, self._config, worker, shared, self._hanging, self._schedules
        )
        try:
            return await session.run(self._stopping, self._at_once)
        finally:
            self._session = None

    def _report(self) -> tuple[bool, dict[str, Any]]:
        """Tell a probe how the worker is. A store that is away is no reason to restart it."""
        session = self._session
        if session is None:
            return True, {"status": "waiting"}
        return session.report()


class _Stopped(Exception):
    """The worker was stopped while it waited for the store."""
