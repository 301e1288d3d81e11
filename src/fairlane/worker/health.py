"""The health of the worker process: memory, CPU, event loop and threads."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from pathlib import Path
from typing import Any

from fairlane.core.model import WorkerStatus
from fairlane.worker.config import Config
from fairlane.worker.runners import Threads

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()

ABANDONED = 10
"""From this many hanging threads on (or `concurrency`, if that is more) a worker is unhealthy."""


def memory() -> int:
    """Return the bytes of memory in use (without /proc: the most so far)."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Health:
    """Measures the process, and decides whether it is healthy."""

    def __init__(self, config: Config, threads: Threads) -> None:
        self._config = config
        self._threads = threads
        self._lag = 0.0
        self._next = time.monotonic()
        self._cpu = (time.monotonic(), time.process_time())

    async def watch(self, every: float = 0.5) -> None:
        """Measure the lag of the event loop until cancelled."""
        while True:
            self._next = time.monotonic() + every
            await asyncio.sleep(every)
            self._lag = time.monotonic() - self._next

    @property
    def lag(self) -> float:
        """Seconds by which the event loop is late, even while it is blocked."""
        return max(self._lag, time.monotonic() - self._next, 0.0)

    def status(self) -> WorkerStatus:
        """Return UNHEALTHY if the worker should get no more tasks."""
        most = self._config.memory_limit
        unhealthy = (
            self.lag > self._config.lag_limit
            or (most is not None and memory() > most)
            or self._threads.abandoned >= max(ABANDONED, self._config.concurrency)
        )
        return WorkerStatus.UNHEALTHY if unhealthy else WorkerStatus.ACTIVE

    def report(self) -> dict[str, Any]:
        """Return what operators see."""
        (then, spent_then), now, spent = self._cpu, time.monotonic(), time.process_time()
        self._cpu = (now, spent)
        cpu = (spent - spent_then) / max(now - then, 1e-6)
        return {
            "memory_bytes": memory(),
            "cpu_share": round(cpu, 3),
            "loop_lag_seconds": round(self.lag, 3),
            "abandoned_threads": self._threads.abandoned,
            "pid": os.getpid(),
        }
