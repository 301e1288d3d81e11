"""A worker process: registers, runs tasks, and leaves in good order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

from fairlane.client.app import Fairlane
from fairlane.client.lifespans import provided
from fairlane.core.errors import StoreError, StoreUnusable
from fairlane.core.flow import Op
from fairlane.upkeep.pauses import Pauses
from fairlane.worker.config import Config
from fairlane.worker.life import End, Life
from fairlane.worker.loading import check_processes

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
        check_processes(self._app, self._config.target)
        async with AsyncExitStack() as stack:
            shared = await provided(self._app.lifespans, self._app.tasks.values(), stack)
            with suppress(_Stopped):
                await self._declare_limits()
                while not self._stopping.is_set():
                    if await self._live(shared) is End.LEFT:
                        return

    async def _declare_limits(self) -> None:
        """Limits from the code hold until an operator says otherwise."""
        ops = self._app.backend.ops
        known = (await self._patiently(ops.controls(), unusable=StoreUnusable)).types
        for task in self._app.tasks.values():
            terms = task.terms
            if task.name not in known and (terms.rate_limit or terms.concurrency):
                op = ops.limit(task.name, rate=terms.rate_limit, concurrency=terms.concurrency)
                await self._patiently(op)

    async def _patiently(self, op: Op[T], unusable: type[StoreError] | tuple[()] = ()) -> T:
        """Perform an operation, however long the store is away; a stop is heeded meanwhile."""
        pauses = Pauses()
        while True:
            try:
                return await self._app.run(op)
            except unusable:
                raise
            except StoreError as error:
                logger.warning("The store is away: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(pauses.next()):
                    await self._stopping.wait()
            if self._stopping.is_set():
                raise _Stopped

    async def _live(self, shared: Mapping[str, Any]) -> End:
        """One life, from registering to leaving."""
        newcomer = self._config.introduction(frozenset(self._app.tasks))
        await self._patiently(self._app.backend.ops.register(newcomer))
        logger.info("Worker %s is ready for %s", newcomer.worker_id, ", ".join(self._app.tasks))
        life = Life(self._app, self._config, newcomer, shared)
        return await life.run(self._stopping, self._at_once)


class _Stopped(Exception):
    """The worker was told to stop while it waited for the store."""
