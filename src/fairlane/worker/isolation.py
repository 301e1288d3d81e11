"""The circuit breaker of a worker, for a machine that fails where others succeed.

When runs of a type keep failing here while runs of the same type complete elsewhere, the fault is
this worker's. It then counts as unhealthy for a cool-down, and gets no tasks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker, verdict
from fairlane.core.errors import StoreError
from fairlane.core.model import Claimed
from fairlane.core.settlement import Settled

logger = logging.getLogger("fairlane.worker")

WATCH_SECONDS = 1.0


class Isolation:
    """Counts how the runs of one worker end, and isolates it if others do better."""

    def __init__(
        self, backend: Backend, breaker: Breaker, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._backend = backend
        self._breaker = breaker
        self._clock = clock
        self._failures: dict[str, list[float]] = {}
        """By type: when runs failed, since the last that did not."""
        self._before: dict[str, int] = {}
        """By type: how many runs had completed anywhere when they began to fail here."""
        self._until = float("-inf")

    @property
    def isolated(self) -> bool:
        """Whether the worker is to get no tasks now."""
        return self._clock() < self._until

    def settled(self, tasks: Sequence[Claimed], answers: Sequence[Settled]) -> None:
        """Count runs that the store has settled."""
        for task, answer in zip(tasks, answers, strict=True):
            good = None if answer.move is None else verdict(answer.move)
            if good:
                self._forget(task.type)
            elif good is False:
                self._failures.setdefault(task.type, []).append(self._clock())

    async def watch(self) -> None:
        """Compare with others, until cancelled. The same trouble is logged once."""
        told = ""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            trouble = ""
            try:
                await self.compare()
            except StoreError as error:
                trouble = str(error)
            if trouble not in ("", told):
                logger.warning("The worker cannot compare itself with others: %s", trouble)
            told = trouble

    async def compare(self) -> None:
        """Isolate the worker if a type fails here and completes elsewhere."""
        since = self._clock() - self._breaker.within
        for type, failures in list(self._failures.items()):
            self._failures[type] = [at for at in failures if at > since]
            if not self._failures[type]:
                self._forget(type)
        if not self._failures or self.isolated:
            return
        completed = await self._backend.run(self._backend.ops.completions(list(self._failures)))
        for type, failures in list(self._failures.items()):
            if type not in completed:
                continue  # it began to fail meanwhile
            before = self._before.setdefault(type, completed[type])
            if len(failures) >= self._breaker.failures and completed[type] > before:
                self._isolate(type, len(failures))

    def _isolate(self, type: str, failures: int) -> None:
        cooldown = self._breaker.cooldown
        self._until = self._clock() + cooldown
        self._failures.clear()
        self._before.clear()
        logger.warning(
            "%d runs of %s failed here while others complete them: the worker takes no tasks for "
            "%g seconds",
            failures,
            type,
            cooldown,
        )

    def _forget(self, type: str) -> None:
        self._failures.pop(type, None)
        self._before.pop(type, None)
