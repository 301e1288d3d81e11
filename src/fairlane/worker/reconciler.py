"""Compares what the worker has with what it holds by the store's word, and settles differences.

This takes place once in a lease after a heartbeat; and with every heartbeat while there is a
difference, or a sign that the store has lost its last changes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from fairlane.backoff import warn
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.holdings import Comparison, Differences, Holdings, InHand, Run, read_all

logger = logging.getLogger("fairlane.worker")

CLAIM_SECONDS = 1.0
"""How long a comparison waits for a claim that is under way; its tasks are not in hand yet."""
LOOK_SECONDS = 0.01


class Reconciler:
    """Reconciles a worker with the store."""

    def __init__(
        self,
        backend: Backend,
        worker_id: str,
        lease: float,
        in_hand: Callable[[], InHand],
        let_go: Callable[[list[Run]], None],
    ) -> None:
        self._backend = backend
        self._worker_id = worker_id
        self._lease = lease
        self._in_hand = in_hand
        self._let_go = let_go
        self._comparison = Comparison()
        self._doubtful = False
        self._due = time.monotonic() + lease
        self._wanted = asyncio.Event()

    @property
    def pending(self) -> bool:
        """Whether a comparison is to follow soon."""
        return self._doubtful or self._comparison.pending

    def doubt(self) -> None:
        """Compare with the next heartbeat: the store seems to have lost its last changes."""
        self._doubtful = True

    def pulse(self) -> None:
        """Compare if it is time: a heartbeat was answered."""
        if self.pending or time.monotonic() >= self._due:
            self._wanted.set()

    async def run(self) -> None:
        """Compare whenever it is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._reconcile()
            except Exception as error:  # noqa: BLE001 (repeated after the next heartbeat)
                warn(logger, "Cannot compare the tasks in hand with the store", error)
            self._wanted.clear()

    async def _reconcile(self) -> None:
        self._doubtful = False
        found = await self._compare()
        self._due = time.monotonic() + self._lease
        if found.missing:
            logger.warning("The store has taken %d tasks away: they stop", len(found.missing))
            self._let_go(found.missing)
        if found.unknown:
            logger.warning(
                "By the store's word this worker holds %d tasks that it does not run: they go back",
                len(found.unknown),
            )
        ops = self._backend.ops
        for start in range(0, len(found.unknown), limits.BATCH):
            batch = found.unknown[start : start + limits.BATCH]
            await self._backend.run(ops.disown(self._worker_id, batch))

    async def _compare(self) -> Differences:
        before = self._in_hand()
        listed = await read_all(self._page)
        asked, latest = self._in_hand().asked, time.monotonic() + CLAIM_SECONDS
        while self._in_hand().answered < asked and time.monotonic() < latest:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return self._comparison.compare(listed, before, self._in_hand())

    async def _page(self, cursor: str | None) -> Holdings:
        op = self._backend.ops.holdings(self._worker_id, limits.BATCH, cursor)
        return await self._backend.run(op)
