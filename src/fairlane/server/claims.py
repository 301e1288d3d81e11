"""Claims on behalf of workers that are reached over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from fairlane.backoff import Backoff, warn
from fairlane.core.errors import KeyMissing, SealBroken
from fairlane.core.flow import Op
from fairlane.core.machine import Outcome, Released, Settlement
from fairlane.core.model import Ask, Claimed, Grant, Start, Verdict
from fairlane.core.sealing import check_open
from fairlane.runtime.execution import put_off, settlement_of, unreadable
from fairlane.server.store_guard import StoreGuard

logger = logging.getLogger("fairlane.server")


class Claims:
    """Takes tasks for workers, and gives them back."""

    def __init__(self, store: StoreGuard) -> None:
        self._store = store

    async def claim(self, ask: Ask) -> Grant:
        """Tasks for a worker that has room for all of them: `begin` has to follow."""
        grant = await self._store.run(self._store.ops.claim(ask))
        if not grant.tasks:
            return grant
        tasks = await self._opened(grant.tasks)
        # What could not be opened may have stood in the way of other tasks.
        due_in = grant.next_due_in if tasks else 0.0
        return msgspec.structs.replace(grant, tasks=tasks, next_due_in=due_in)

    async def begin(self, tasks: Sequence[Claimed]) -> None:
        """Tasks that are handed out run from then on: a worker need not know that there is a call
        to say so. Tries until it is done."""
        starts = [Start(task.task_id, task.attempt) for task in tasks]
        await self._persist(self._store.ops.start(tasks[0].worker_id, starts))

    async def release(self, tasks: Sequence[Claimed]) -> None:
        """Give back what did not reach its worker; it costs no retry. Tries until it is done."""
        settlements = [settlement_of(task, Released(), None) for task in tasks]
        await self._persist(self._store.ops.settle(settlements))

    async def _persist(self, op: Op[list[Verdict]]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._store.run(op)
            except Exception as error:  # noqa: BLE001 (nobody else would record it)
                warn(logger, "What became of claimed tasks cannot be recorded yet", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _opened(self, tasks: list[Claimed]) -> list[Claimed]:
        """Those whose payload is no longer sealed: a worker could do nothing with the others."""
        opened: list[Claimed] = []
        sealed: list[Settlement] = []
        for task in tasks:
            trouble = _trouble(task)
            if trouble is None:
                opened.append(task)
            else:
                sealed.append(settlement_of(task, trouble, None))
        if sealed:
            await self._store.run(self._store.ops.settle(sealed))
        return opened


def _trouble(task: Claimed) -> Outcome | None:
    """What becomes of a task that cannot be opened; None for all others."""
    try:
        check_open(task.payload)
    except KeyMissing as error:
        return put_off(error)
    except SealBroken as error:
        return unreadable(error)
    return None
