"""What living workers hold by the store's word, looked at again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreError
from fairlane.core.holdings import Holdings, read_all
from fairlane.core.model import WorkerStatus

GAP_SECONDS = 5.0
"""After this long without a look, nothing is known of the time between: the store may have been
away, or have gone back in time."""


class Held(NamedTuple):
    """A run that is executing by the store's word."""

    task: str
    attempt: int
    worker: str


class Spell(msgspec.Struct, frozen=True):
    """From `since` to `until`, by the monotonic clock, every look found this run in the hands of a
    living worker. `lease`: the worker's, in seconds."""

    held: Held
    lease: float
    since: float
    until: float


class Spells:
    """Puts looks together."""

    def __init__(self) -> None:
        self._open: dict[Held, Spell] = {}
        self._over: list[Spell] = []
        self._latest = float("-inf")

    def look(self, asked: float, answered: float, found: Mapping[Held, float]) -> None:
        """Add a look. `found`: what was held, each with its worker's lease, at some moment between
        the question and the answer."""
        unbroken = answered - self._latest <= GAP_SECONDS
        self._latest = answered
        known = {held: spell for held, spell in self._open.items() if unbroken and held in found}
        over = (spell for held, spell in self._open.items() if held not in known)
        self._over += (spell for spell in over if spell.until > spell.since)
        self._open = {}
        for held, lease in found.items():
            since = known[held].since if held in known else answered
            self._open[held] = Spell(held, lease, since, max(since, asked))

    def all(self) -> tuple[Spell, ...]:
        return (*self._over, *self._open.values())


class Watch:
    """Looks at a store until it is cancelled."""

    POLL_SECONDS = 0.5

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._spells = Spells()

    @property
    def spells(self) -> tuple[Spell, ...]:
        return self._spells.all()

    async def follow(self) -> None:
        """Look again and again; a store that is away is waited for."""
        while True:
            with suppress(StoreError):
                asked = time.monotonic()
                found = await self._found()
                self._spells.look(asked, time.monotonic(), found)
            await asyncio.sleep(self.POLL_SECONDS)

    async def _found(self) -> dict[Held, float]:
        found: dict[Held, float] = {}
        for worker in await self._backend.run(self._backend.ops.workers()):
            if worker.status is not WorkerStatus.DEAD and not worker.lost:
                runs = await read_all(partial(self._page, worker.worker_id))
                found |= {Held(*run, worker.worker_id): worker.lease for run in runs}
        return found

    async def _page(self, worker_id: str, cursor: str | None) -> Holdings:
        op = self._backend.ops.holdings(worker_id, limits.BATCH, cursor)
        return await self._backend.run(op)
