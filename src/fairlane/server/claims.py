"""Claiming tasks for workers that use HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlane.backoff import Backoff, warn
from fairlane.core.errors import KeyMissing, SealBroken
from fairlane.core.flow import Op
from fairlane.core.model import Ask, Claimed, Grant, Start
from fairlane.core.outcomes import Outcome, Released
from fairlane.core.sealing import check_open
from fairlane.core.settlement import Settlement
from fairlane.runtime.execution import put_off, settlement_of, unreadable
from fairlane.server.store_guard import StoreGuard
from fairlane.telemetry.notices import Notices

logger = logging.getLogger("fairlane.server")


class Claims:
    """Claims tasks for workers, and gives them back."""

    def __init__(self, store: StoreGuard) -> None:
        self._store = store
        self._notices = Notices(logger)

    async def claim(self, ask: Ask) -> Grant:
        """Claim tasks for a worker."""
        grant = await self._store.run(self._store.ops.claim(ask))
        if not grant.tasks:
            return grant
        tasks = await self._take_readable(grant.tasks)
        # Tasks that could not be decrypted may have kept others from being claimed: ask again.
        due_in = grant.next_due_in if tasks else 0.0
        return msgspec.structs.replace(grant, tasks=tasks, next_due_in=due_in)

    async def begin(self, tasks: Sequence[Claimed]) -> None:
        """Record that tasks run, for workers that do not report it. Repeats until it is done."""
        starts = [Start(task.task_id, task.attempt) for task in tasks]
        await self._persist(self._store.ops.start(tasks[0].worker_id, starts))

    async def release(self, tasks: Sequence[Claimed]) -> None:
        """Give back tasks that did not reach their worker; that costs no retry. Repeats until it is
        done."""
        settlements = [settlement_of(task, Released(), None) for task in tasks]
        await self._persist(self._store.ops.settle(settlements))

    async def _persist(self, op: Op[Any]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._store.run(op)
            except Exception as error:  # noqa: BLE001 (repeated until it works)
                warn(logger, "Claimed tasks cannot be updated yet", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _take_readable(self, tasks: list[Claimed]) -> list[Claimed]:
        """Return the tasks whose payload could be decrypted. Settle the others: no worker could run
        them."""
        opened: list[Claimed] = []
        sealed: list[Settlement] = []
        for task in tasks:
            failure = _sealed_outcome(task, self._notices)
            if failure is None:
                opened.append(task)
            else:
                sealed.append(settlement_of(task, failure, None))
        if sealed:
            await self._store.run(self._store.ops.settle(sealed))
        return opened


def _sealed_outcome(task: Claimed, notices: Notices) -> Outcome | None:
    """Return the outcome of a task that cannot be decrypted; None for all others."""
    try:
        check_open(task.payload)
    except KeyMissing as error:
        return put_off(error, task, notices)
    except SealBroken as error:
        return unreadable(error)
    return None
