"""004's configuration, and what the core makes of it."""

from __future__ import annotations

import msgspec

from fairlane.core import limits, retry
from fairlane.worker.config import Config as WorkerConfig


class Config(msgspec.Struct, frozen=True):
    """Where tasks are kept, and what holds for those that say nothing else."""

    database_url: str
    """The URL of any store: postgresql://…, sqlite:///tasks.db, redis://…."""
    max_retries: int = 3
    base_retry_delay_seconds: float = 5.0
    retry_backoff_multiplier: float = 2.0
    lock_timeout_seconds: float = 600
    """How long a worker may be silent before others take over what it held."""
    default_task_timeout_seconds: float | None = None
    worker_id: str | None = None
    """What the ids of this process's workers begin with; they are made up if it is not given."""

    def __post_init__(self) -> None:
        retry.checked(self.retry)

    @property
    def retry(self) -> retry.RetryPolicy:
        """The same as the core has it: nothing limits the delay, nothing spreads it."""
        return retry.RetryPolicy(
            base=self.base_retry_delay_seconds,
            factor=self.retry_backoff_multiplier,
            cap=limits.DELAY_SECONDS,
            jitter=0.0,
        )

    def worker(self, concurrency: int, poll_interval: float) -> WorkerConfig:
        """How a worker works under these terms."""
        return WorkerConfig(
            concurrency=concurrency,
            poll_interval=poll_interval,
            lease=self.lock_timeout_seconds,
            name=self.worker_id,
        )
