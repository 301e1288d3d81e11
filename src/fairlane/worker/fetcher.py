"""Keeps the buffer as full as the prefetch rule allows, and sleeps exactly as long as there is
nothing to do."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple

import msgspec

from fairlane.backoff import Backoff, jitter, listen
from fairlane.core import limits
from fairlane.core.backend import Backend, Wakeup
from fairlane.core.errors import StoreError
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Grant
from fairlane.telemetry.observer import Observer
from fairlane.worker.buffer import Buffer
from fairlane.worker.prefetch import Prefetch

logger = logging.getLogger("fairlane.worker")

AHEAD = limits.BATCH // 2
"""Most that one claim takes ahead: while these run, the next ones are on their way."""
LAST_CLAIM_SECONDS = 2.0
HEARD = 100
"""So many requests are remembered."""
WAIT_SECONDS = 20.0
"""How long a claim may stay with a remote store that has nothing to give."""
NOTHING = Grant([])


class Room(NamedTuple):
    """How many tasks could begin at once, and how many more may be held."""

    slots: int
    ahead: int


class Fetcher:
    """Claims tasks for the consumers behind a buffer. One claim is under way at a time."""

    def __init__(
        self,
        backend: Backend,
        like: Ask,
        buffer: Buffer,
        prefetch: Prefetch,
        poll_interval: float,
        observer: Observer | None = None,
    ) -> None:
        self._backend = backend
        self._like = like
        self._buffer = buffer
        self._prefetch = prefetch
        self._poll_interval = poll_interval
        self._observer = observer
        self._waits = backend.driver.remote
        self._heard: deque[str] = deque([""], HEARD)
        """The requests that brought something; the last of them is told with the next one."""

    async def run(self) -> None:
        """Fetch, until cancelled. Raises WorkerGone when the worker has been declared dead."""
        wakeup = await listen(self._backend.driver)
        try:
            room = self._room()
            claim = self._begun(room)
            while True:
                grant = NOTHING if claim is None else await self._brought(claim)
                if not grant.tasks:
                    if claim is not None and room.slots:
                        await self._rest(wakeup, grant.next_due_in)
                    else:
                        # Who has a slot again may get what is not given to anyone ahead.
                        await self._buffer.changed()
                    room = self._room()
                    claim = self._begun(room)
                    continue
                room = self._room(arriving=len(grant.tasks))
                if len(grant.tasks) <= self._buffer.idle:
                    self._buffer.put(grant.tasks)
                    claim = self._begun(room)
                else:
                    claim = self._begun(room)
                    # After the claim, which is thereby on its way before these keep the loop busy:
                    # the store finds the next ones while we run them.
                    asyncio.get_running_loop().call_soon(self._buffer.put, grant.tasks)
        finally:
            await wakeup.aclose()

    def _room(self, arriving: int = 0) -> Room:
        """What there is room for, beside so many that are about to be in the buffer."""
        waiting = len(self._buffer) + arriving
        slots = min(max(0, self._buffer.idle - waiting), limits.BATCH)
        return Room(slots, min(self._prefetch.ahead(waiting), max(0, AHEAD - slots)))

    def _begun(self, room: Room) -> asyncio.Future[Grant] | None:
        """A claim, if there is room."""
        return asyncio.ensure_future(self._claim(*room)) if any(room) else None

    async def _brought(self, claim: asyncio.Future[Grant]) -> Grant:
        """A claim that is under way when we are cancelled still brings what it was given."""
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            if self._waits:
                # It may take long, and what it is given after all goes back when the worker leaves.
                claim.cancel()
            await asyncio.wait([claim], timeout=LAST_CLAIM_SECONDS)
            if claim.done() and not (claim.cancelled() or claim.exception()):
                self._buffer.put(claim.result().tasks)
            claim.cancel()
            raise

    async def _claim(self, slots: int, ahead: int) -> Grant:
        # The same request until it is answered: a lost reply costs nothing.
        ask = msgspec.structs.replace(
            self._like,
            request_id=new_id(),
            slots=slots,
            ahead=ahead,
            # Who has no room now may have some soon, and then for more kinds of tasks.
            wait=WAIT_SECONDS if self._waits and slots else 0.0,
            heard=self._heard[-1],
        )
        backoff = Backoff()
        while True:
            try:
                since = 0 if self._observer is None else self._observer.now()
                grant = await self._backend.run(self._backend.ops.claim(ask))
            except StoreError as error:
                logger.warning("No tasks can be claimed: %s", error)
                await asyncio.sleep(backoff.next())
                continue
            given = ask.request_id if grant.request_id is None else grant.request_id
            if given != ask.request_id and (given in self._heard or not grant.tasks):
                # We know of it, or nothing is left of it: the store shall go on from there.
                self._heard.append(given)
                ask = msgspec.structs.replace(ask, heard=given)
                continue
            if grant.tasks:
                self._heard.append(given)
            if self._observer is not None:
                self._observer.claimed(grant.tasks, since)
            return grant

    async def _rest(self, wakeup: Wakeup, due_in: float | None) -> None:
        seconds = jitter(self._poll_interval)
        if due_in is not None:
            seconds = min(seconds, due_in)
        try:
            await wakeup.wait(seconds)
        except StoreError as error:
            logger.warning("Cannot listen for work: %s", error)
            await asyncio.sleep(seconds)
