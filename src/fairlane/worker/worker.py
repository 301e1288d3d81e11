"""A worker process: registers, runs tasks, and leaves in good order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

import msgspec

from fairlane.backoff import Backoff
from fairlane.client.app import Fairlane
from fairlane.core.errors import AccessDenied, StoreError, StoreUnusable
from fairlane.core.flow import Op
from fairlane.runtime.lifespans import provided
from fairlane.worker.config import Config
from fairlane.worker.loading import Tasks, check_processes, served
from fairlane.worker.session import SessionEnd, WorkerSession

logger = logging.getLogger("fairlane.worker")

T = TypeVar("T")


class Worker:
    """Runs an application's tasks until it is told to stop.

    A worker that was declared dead while it could not speak up (suspended, cut off) drops what it
    held and begins a new life under a new id.
    """

    def __init__(self, app: Fairlane, config: Config = Config()) -> None:  # noqa: B008
        self._app = app
        self._config = config
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._known = False
        """The store has taken it for a worker before."""

    def stop(self) -> None:
        """Stop claiming and let what runs finish; called again: stop at once."""
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()

    async def run(self, *, signals: bool = True) -> None:
        """Work until stopped, or drained by an operator. `signals`: SIGTERM and SIGINT stop it.

        Raises StoreUnusable when the store could never be used, InvalidHandler or InvalidWorker
        when the application cannot be run so.
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
        tasks = served(self._app, self._config.types)
        check_processes(tasks, self._config.target)
        async with AsyncExitStack() as stack:
            shared = await provided(self._app.lifespans, tasks.values(), stack)
            with suppress(_Stopped):
                await self._declare_limits(tasks)
                backoff = Backoff()
                while not self._stopping.is_set():
                    end = await self._live(tasks, shared)
                    if end is SessionEnd.LEFT:
                        return
                    if end is SessionEnd.BROKEN:
                        await self._pause(backoff.next())

    async def _declare_limits(self, tasks: Tasks) -> None:
        """Limits from the code hold until an operator says otherwise."""
        ops = self._app.backend.ops
        await self._patiently(ops.verify(), unusable=StoreUnusable)
        limited = [
            task for task in tasks.values() if task.terms.rate_limit or task.terms.concurrency
        ]
        if not limited:
            return
        try:
            known = (await self._patiently(ops.controls(), unusable=AccessDenied)).types
            for task in limited:
                if task.name not in known:
                    rate, most = task.terms.rate_limit, task.terms.concurrency
                    op = ops.limit(task.name, rate=rate, concurrency=most)
                    await self._patiently(op, unusable=AccessDenied)
        except AccessDenied as error:
            logger.warning("The limits of this code are not set: %s", error)

    async def _patiently(self, op: Op[T], unusable: type[StoreError] | tuple[()] = ()) -> T:
        """Perform an operation, however long the store is away; a stop is heeded meanwhile."""
        backoff = Backoff()
        while True:
            try:
                return await self._app.run(op)
            except unusable:
                raise
            except StoreError as error:
                logger.warning("The store is away: %s", error)
            await self._pause(backoff.next())
            if self._stopping.is_set():
                raise _Stopped

    async def _pause(self, seconds: float) -> None:
        """Not longer than until the worker is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _live(self, tasks: Tasks, shared: Mapping[str, Any]) -> SessionEnd:
        """One life, from registering to leaving."""
        newcomer = self._config.introduction(frozenset(tasks))
        # A token that is not for workers is told at once; one that is revoked later may come back.
        refused = () if self._known else AccessDenied
        op = self._app.backend.ops.register(newcomer)
        worker_id = await self._patiently(op, unusable=refused)
        self._known = True
        logger.info("Worker %s is ready for %s", worker_id, ", ".join(tasks))
        worker = msgspec.structs.replace(newcomer, worker_id=worker_id)
        session = WorkerSession(self._app, self._config, worker, shared)
        return await session.run(self._stopping, self._at_once)


class _Stopped(Exception):
    """The worker was told to stop while it waited for the store."""
