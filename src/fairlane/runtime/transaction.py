"""The completing transaction commits a handler's writes and its task's completion together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from fairlane.core.backend import Backend
from fairlane.core.errors import LeaseLost
from fairlane.core.model import Claimed, Verdict
from fairlane.core.outcomes import Completed
from fairlane.runtime.execution import settlement_of


class Completable(Protocol):
    """A run that a transaction can complete. `done`: the store has recorded its end."""

    task: Claimed
    began: float
    done: bool


@asynccontextmanager
async def completing_transaction(backend: Backend, run: Completable) -> AsyncIterator[Any]:
    """Yield the connection. The end of the block completes the task and commits everything.

    The result of such a task is null: its effects are in the database. Raises LeaseLost, and rolls
    everything back, if the task is no longer the worker's.
    """
    async with backend.driver.transaction() as transaction:
        yield transaction.connection
        settlement = settlement_of(run.task, Completed(b"null"), time.monotonic() - run.began)
        (settled,) = await transaction.run(backend.ops.settle([settlement]))
        if settled.verdict is not Verdict.APPLIED:
            raise LeaseLost
    run.done = True
