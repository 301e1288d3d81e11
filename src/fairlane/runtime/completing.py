"""The completing transaction: a handler's writes and the completion of its task, together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from fairlane.core.backend import Backend
from fairlane.core.errors import LeaseLost
from fairlane.core.machine import Completed
from fairlane.core.model import Claimed, Verdict
from fairlane.runtime.execution import settlement_of


class Completable(Protocol):
    """A run that a transaction may complete. `done`: the store has been told of its end."""

    task: Claimed
    began: float
    done: bool


@asynccontextmanager
async def completing(backend: Backend, run: Completable) -> AsyncIterator[Any]:
    """Gives the connection; at the end of the block the task is completed and all of it committed.

    The result of a task that completes so is null: its effects are in the database. Raises
    LeaseLost, and undoes everything, when the task is no longer the worker's.
    """
    async with backend.driver.transaction() as transaction:
        yield transaction.connection
        settlement = settlement_of(run.task, Completed(b"null"), time.monotonic() - run.began)
        (verdict,) = await transaction.run(backend.ops.settle([settlement]))
        if verdict is not Verdict.APPLIED:
            raise LeaseLost
    run.done = True
