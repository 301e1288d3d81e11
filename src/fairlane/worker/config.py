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
from fairlane.core.text import is_name, shown

NAME_LENGTH = 100
"""Of what an id begins with: the whole of it is shown in lists."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker process works. Times are seconds."""

    concurrency: int = 10
    """Tasks that run at once."""
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    poll_interval: float = 1.0
    """How long an idle worker waits before it looks again, hints or not."""
    lease: float = limits.LEASE_SECONDS
    """After so long without a sign of life the worker counts as dead; when it does maintenance it
    looks for others who are every twelfth of it (at most 2.5 s)."""
    grace: float = 30.0
    """How long running tasks may take to finish once the worker is to stop."""
    target: str | None = None
    """Where the application can be imported, `module:attribute`; needed by isolation="process"."""
    tasks_per_child: int | None = None
    """After so many tasks a process of isolation="process" is replaced by a new one."""
    name: str | None = None
    """What its ids begin with. Only begin: an id is never used twice."""
    types: frozenset[str] | None = None
    """Which of the application's tasks it runs; all of them if it is not said."""
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
        if self.lease > limits.LEASE_SECONDS_LONGEST:
            raise InvalidWorker(
                f"A worker's lease is at most {limits.LEASE_SECONDS_LONGEST:,.0f} seconds."
            )
        if self.tasks_per_child is not None and self.tasks_per_child < 1:
            raise InvalidWorker("A worker's tasks_per_child is a whole number, 1 or more.")
        if self.name is not None and not (is_name(self.name) and len(self.name) <= NAME_LENGTH):
            raise InvalidWorker(
                f"A worker's name has 1 to {NAME_LENGTH} characters out of A-Z a-z 0-9 _ . : - "
                f"only. Got {shown(self.name)}."
            )
        if not self.grace >= 0:
            raise InvalidWorker("A worker's grace is a number of seconds, 0 or more.")

    def introduction(self, types: frozenset[str]) -> NewWorker:
        """The worker as it registers. Its id is random per process start."""
        return NewWorker(
            worker_id=new_id() if self.name is None else f"{self.name}.{new_id()}",
            capacity=self.concurrency,
            capabilities=self.capabilities,
            queues=self.queues,
            types=types,
            host=f"{socket.gethostname()}:{os.getpid()}"[: limits.NAME_LENGTH],
            version=__version__,
            lease=self.lease,
        )
