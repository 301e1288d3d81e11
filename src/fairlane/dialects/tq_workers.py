"""The workers of one task type, on a thread for programs that have no event loop of their own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import msgspec

from fairlane.client.app import Fairlane
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

T = TypeVar("T")

logger = logging.getLogger("fairlane.tq")


class LoopThread:
    """A thread with an event loop. It starts with the first coroutine."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the thread's event loop."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def stop(self) -> None:
        """Stop the thread. Coroutines that still run are cancelled."""
        with self._guard:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()


class WorkerGroup:
    """Workers whose concurrency adds up to a number that can change.

    The concurrency of one worker is fixed. To grow, the group starts another worker for the
    difference; to shrink, it stops workers, each of which finishes what it runs.
    """

    def __init__(self, app: Fairlane, thread: LoopThread) -> None:
        self._app = app
        self._thread = thread
        self._workers: list[tuple[Worker, int, Future[None]]] = []
        self._runs: list[Future[None]] = []

    @property
    def concurrency(self) -> int:
        return sum(concurrency for _, concurrency, _ in self._workers)

    @property
    def broken(self) -> bool:
        """Whether a worker that was not stopped has ended."""
        return any(run.done() for _, _, run in self._workers)

    def resize(self, config: Config) -> None:
        """Start or stop workers until the group has the concurrency of `config`."""
        while self.concurrency > config.concurrency:
            self._stop_one()
        missing = config.concurrency - self.concurrency
        if missing:
            self._start_one(msgspec.structs.replace(config, concurrency=missing))

    def retire(self) -> list[Future[None]]:
        """Stop all workers, and return their runs, which end when they have finished."""
        runs = [run for _, _, run in self._workers]
        while self._workers:
            self._stop_one()
        return runs

    async def stop(self) -> None:
        """Stop all workers, and wait until they have finished what they run."""
        self.retire()
        await asyncio.gather(*map(asyncio.wrap_future, self._runs), return_exceptions=True)
        self._runs.clear()

    def _start_one(self, config: Config) -> None:
        worker = Worker(self._app, config)
        run = self._thread.start(worker.run(signals=False))
        run.add_done_callback(partial(_log_failure, ", ".join(config.types or ())))
        self._workers.append((worker, config.concurrency, run))
        self._runs = [each for each in self._runs if not each.done()] + [run]

    def _stop_one(self) -> None:
        worker, _, _ = self._workers.pop()
        self._thread.start(_stop(worker))


async def _stop(worker: Worker) -> None:
    worker.stop()


def _log_failure(types: str, run: Future[None]) -> None:
    error = None if run.cancelled() else run.exception()
    if error is not None:
        logger.error("The worker for %s gave up: %s", types, error, exc_info=error)
