"""The workers of one task type in this process."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from functools import partial

import msgspec

from fairlane.client.app import Fairlane
from fairlane.edges.threads import LoopThread
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

logger = logging.getLogger("fairlane.tq")


class Crew:
    """Workers that together run so many tasks at once.

    A worker's concurrency is fixed, so growing means one more worker for the difference, and
    shrinking means to send workers home, each when it has finished what it runs.
    """

    def __init__(self, app: Fairlane, thread: LoopThread) -> None:
        self._app = app
        self._thread = thread
        self._working: list[tuple[Worker, int]] = []
        self._runs: list[Future[None]] = []

    @property
    def size(self) -> int:
        return sum(concurrency for _, concurrency in self._working)

    def resize(self, config: Config) -> None:
        """Make it as many as the config says."""
        while self.size > config.concurrency:
            self._send_home()
        missing = config.concurrency - self.size
        if missing:
            self._hire(msgspec.structs.replace(config, concurrency=missing))

    async def dismiss(self) -> None:
        """Send everyone home; answers when they have gone."""
        while self._working:
            self._send_home()
        await asyncio.gather(*map(asyncio.wrap_future, self._runs), return_exceptions=True)
        self._runs.clear()

    def _hire(self, config: Config) -> None:
        worker = Worker(self._app, config)
        run = self._thread.begin(worker.run(signals=False))
        run.add_done_callback(partial(_told, ", ".join(config.types or ())))
        self._working.append((worker, config.concurrency))
        self._runs = [each for each in self._runs if not each.done()] + [run]

    def _send_home(self) -> None:
        worker, _ = self._working.pop()
        self._thread.begin(_stopped(worker))


async def _stopped(worker: Worker) -> None:
    worker.stop()


def _told(types: str, run: Future[None]) -> None:
    error = None if run.cancelled() else run.exception()
    if error is not None:
        logger.error("The worker for %s gave up: %s", types, error, exc_info=error)
