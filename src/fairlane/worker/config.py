"""What a worker may be told."""

from __future__ import annotations

import os
import socket

import msgspec

from fairlane import __version__
from fairlane.core import limits
from fairlane.core.errors import InvalidWorker
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.core.retention import DEFAULT, Retention


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker process works. Times are seconds."""

    concurrency: int = 10
    """Tasks that run at once."""
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    poll_interval: float = 1.0
    """How long an idle worker waits before it looks again, hints or not."""
    lease: float = limits.LEASE_SECONDS
    """After so long without a sign of life the worker counts as dead."""
    grace: float = 30.0
    """How long running tasks may take to finish once the worker is to stop."""
    target: str | None = None
    """Where the application can be imported, `module:attribute`; needed by isolation="process"."""
    maintenance: bool = True
    retention: Retention = DEFAULT
    memory_limit: int | None = None
    """Bytes of memory above which the worker calls itself unhealthy, and gets no more tasks."""
    lag_limit: float = 5.0
    """Seconds that its event loop may be held up before it calls itself unhealthy."""

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= limits.CONCURRENCY:
            raise InvalidWorker(
                f"A worker's concurrency is 1 to {limits.CONCURRENCY:,} tasks, not "
                f"{self.concurrency:,}."
            )
        for name in ("poll_interval", "lease", "lag_limit"):
            if not getattr(self, name) > 0:
                raise InvalidWorker(f"A worker's {name} is a number of seconds above 0.")
        if not self.grace >= 0:
            raise InvalidWorker("A worker's grace is a number of seconds, 0 or more.")

    def introduction(self, types: frozenset[str]) -> NewWorker:
        """The worker as it registers. Its id is random per process start."""
        return NewWorker(
            worker_id=new_id(),
            capacity=self.concurrency,
            capabilities=self.capabilities,
            queues=self.queues,
            types=types,
            host=f"{socket.gethostname()}:{os.getpid()}"[: limits.NAME_LENGTH],
            version=__version__,
            lease=self.lease,
        )
