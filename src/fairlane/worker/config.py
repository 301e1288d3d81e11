"""The settings of a worker."""

from __future__ import annotations

import os
import socket

import msgspec

from fairlane import __version__
from fairlane.core import limits
from fairlane.core.breaker import Breaker, checked
from fairlane.core.errors import InvalidWorker
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.core.text import is_name, shown

NAME_LENGTH = 100
"""The longest name: lists show whole worker ids, which begin with it."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one worker. Times are in seconds."""

    concurrency: int = 10
    """How many tasks run at once."""
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    poll_interval: float = 1.0
    """How long an idle worker waits for a hint before it claims again."""
    lease: float = limits.LEASE_SECONDS
    """After this time without a heartbeat the worker counts as dead. While it is elected for
    maintenance, it looks for dead workers every twelfth of it (at most every 2.5 s)."""
    grace: float = 30.0
    """How long running tasks may take to finish when the worker stops."""
    target: str | None = None
    """Where the application can be imported, `module:attribute`; needed by isolation="process"."""
    tasks_per_child: int | None = None
    """After this many tasks a process of isolation="process" is replaced by a new one."""
    name: str | None = None
    """What the worker's id begins with. The rest is random: an id is never used twice."""
    types: frozenset[str] | None = None
    """The names of the tasks that it runs; None for all tasks of the application."""
    maintenance: bool = True
    memory_limit: int | None = None
    """Bytes of memory above which the worker reports itself unhealthy and gets no more tasks."""
    lag_limit: float = 5.0
    """How long its event loop may be blocked before it reports itself unhealthy."""
    breaker: Breaker | None = None
    """After this many failures of a type that completes elsewhere, the worker gets no tasks for a
    while."""
    pacemaker: bool = False
    """Whether a small process beside the worker keeps its lease while a handler blocks the whole
    interpreter. Linux only, and not for a store in memory."""
    health_port: int | None = None
    """Where the worker answers `GET /health`, for liveness probes; None for nowhere."""
    health_host: str = "127.0.0.1"

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
        if self.breaker is not None:
            checked(self.breaker)
        if not self.grace >= 0:
            raise InvalidWorker("A worker's grace is a number of seconds, 0 or more.")

    def new_worker(self, types: frozenset[str]) -> NewWorker:
        """Return the worker as it registers, with a new random id."""
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
