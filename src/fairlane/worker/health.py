"""The health of the worker process: memory, CPU, event loop and threads."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlane.core.held_back import IN_HEALTH, listed
from fairlane.core.model import WorkerStatus
from fairlane.worker.config import Config
from fairlane.worker.hanging import Hanging

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()

ABANDONED = 20
"""From this many hanging threads on (or twice `concurrency`, if that is more) it is unhealthy.
One type alone does not get there quickly: it is held back before."""


def memory() -> int:
    """Return the bytes of memory in use (without /proc: the most so far)."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Health:
    """Measures the process, and decides whether it is healthy."""

    def __init__(self, config: Config, hanging: Hanging) -> None:
        self._config = config
        self._hanging = hanging
        self._lag = 0.0
        self._next = time.monotonic()
        self._cpu = (time.monotonic(), time.process_time())

    async def watch(self, stuck: Callable[[], None], every: float = 0.5) -> None:
        """Measure the lag of the event loop until cancelled.

        Call `stuck` once too many threads have been hanging for a whole lease.
        """
        overrun_since = None
        while True:
            self._next = time.monotonic() + every
            await asyncio.sleep(every)
            self._lag = time.monotonic() - self._next
            if not self._overrun:
                overrun_since = None
            elif overrun_since is None:
                overrun_since = time.monotonic()
            elif time.monotonic() - overrun_since > self._config.lease:
                stuck()

    @property
    def lag(self) -> float:
        """Seconds by which the event loop is late, or was when it was last measured."""
        return max(self._lag, self.late, 0.0)

    @property
    def late(self) -> float:
        """Seconds by which the event loop is late at this moment; below 0 if it is in time."""
        return time.monotonic() - self._next

    def status(self) -> WorkerStatus:
        """Return UNHEALTHY if the worker should get no more tasks."""
        most = self._config.memory_limit
        unhealthy = (
            self.lag > self._config.lag_limit
            or (most is not None and memory() > most)
            or self._overrun
        )
        return WorkerStatus.UNHEALTHY if unhealthy else WorkerStatus.ACTIVE

    @property
    def _overrun(self) -> bool:
        return self._hanging.threads >= max(ABANDONED, 2 * self._config.concurrency)

    def report(self) -> dict[str, Any]:
        """Return what operators see."""
        (then, spent_then), now, spent = self._cpu, time.monotonic(), time.process_time()
        self._cpu = (now, spent)
        cpu = (spent - spent_then) / max(now - then, 1e-6)
        held = self._hanging.held
        return {
            "memory_bytes": memory(),
            "cpu_share": round(cpu, 3),
            "loop_lag_seconds": round(self.lag, 3),
            "abandoned_threads": self._hanging.threads,
            "pid": os.getpid(),
            **({IN_HEALTH: listed(held)} if held else {}),
        }
