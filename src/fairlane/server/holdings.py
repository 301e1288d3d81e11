"""Compares the tasks that a worker lists in its heartbeats with what it holds by the store's word.

The worker may go on at another server, so each server compares by itself, the heartbeats that it
gets. Tasks whose poll was not answered are on no list, and go to other workers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from fairlane.backoff import warn
from fairlane.core import limits
from fairlane.core.errors import StoreError
from fairlane.core.holdings import Holdings, InHand, Run, read_all
from fairlane.server.store_guard import StoreGuard
from fairlane.server.workers import KnownWorker
from fairlane.wire.worker_protocol import ListedRun

logger = logging.getLogger("fairlane.server")

PAUSE_SHARE: Final = 6
"""Between two comparisons 1/6 of the lease passes: a reply to a poll has arrived by then."""


class HoldingsCheck:
    """Compares lists of workers with the store."""

    def __init__(self, store: StoreGuard, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock

    async def compare(
        self, worker_id: str, known: KnownWorker, listed: Sequence[ListedRun]
    ) -> list[Run]:
        """Return the runs that the worker is to stop. Gives to others what it does not list."""
        now = self._clock()
        if now - known.compared_at < known.lease / PAUSE_SHARE:
            return []
        known.compared_at = now
        try:
            return await self._compare(worker_id, known, listed)
        except StoreError as error:  # the heartbeat itself has succeeded
            warn(logger, "Cannot compare the tasks of a worker with the store", error)
            return []

    async def _compare(
        self, worker_id: str, known: KnownWorker, listed: Sequence[ListedRun]
    ) -> list[Run]:
        async def page(cursor: str | None) -> Holdings:
            op = self._store.ops.holdings(worker_id, limits.BATCH, cursor)
            return await self._store.run(op)

        stored = await read_all(page)
        attempts = dict(stored)
        in_hand = InHand(
            frozenset(
                (each.task_id, each.attempt or attempts.get(each.task_id, 0)) for each in listed
            )
        )
        found = known.comparison.compare(stored, in_hand, in_hand)
        for start in range(0, len(found.unknown), limits.BATCH):
            batch = found.unknown[start : start + limits.BATCH]
            await self._store.run(self._store.ops.disown(worker_id, batch))
        # A worker stops tasks by their ids: not those of which it runs the right attempt, too.
        right = {task_id for task_id, _ in stored & in_hand.runs}
        return [run for run in found.missing if run[0] not in right]
