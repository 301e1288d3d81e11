"""Claims tasks: keeps the buffer as full as `Prefetch` allows, and sleeps while there is nothing to
claim."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from fairlane.backoff import Backoff, jitter, listen
from fairlane.core import limits
from fairlane.core.backend import Backend, Wakeup
from fairlane.core.errors import StoreError
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, Grant
from fairlane.telemetry.observer import Observer
from fairlane.worker.buffer import Buffer
from fairlane.worker.hanging import Hanging

logger = logging.getLogger("fairlane.worker")

AHEAD = limits.BATCH // 2
"""The most tasks that one claim takes ahead: while they run, the next ones are on their way."""
LAST_CLAIM_SECONDS = 2.0
HEARD = 100
"""How many requests are remembered."""
WAIT_SECONDS = 20.0
"""How long a claim may wait at a server that has no task for it."""
NOTHING = Grant([])
PREFETCH_SECONDS = 0.05
_SLICES = 5


class Prefetch:
    """Decides how many tasks a worker holds beyond those that it runs: about as many as it finished
    in the last 50 ms.

    So a worker with long tasks takes none that another could run at once, and one with tiny tasks
    claims hundreds at a time. Finished tasks are counted in slices of ten milliseconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts = [0] * _SLICES
        self._slice = 0

    def finished(self, count: int) -> None:
        """Count tasks that have just ended."""
        self._counts[self._turn()] += count

    def ahead(self, held: int) -> int:
        """Return how many more tasks a worker may claim that holds `held` unstarted ones."""
        self._turn()
        return max(0, min(sum(self._counts), limits.BATCH) - held)

    def _turn(self) -> int:
        now = int(self._clock() / (PREFETCH_SECONDS / _SLICES))
        passed = min(now - self._slice, _SLICES)
        for step in range(passed):
            self._counts[(self._slice + 1 + step) % _SLICES] = 0
        self._slice = now
        return now % _SLICES


class Room(NamedTuple):
    """How many tasks could start at once, and how many more may be held."""

    slots: int
    ahead: int


class Fetcher:
    """Claims tasks for the consumers behind a buffer, one claim at a time."""

    def __init__(
        self,
        backend: Backend,
        like: Ask,
        buffer: Buffer,
        prefetch: Prefetch,
        poll_interval: float,
        observer: Observer | None = None,
        doubt: Callable[[], None] = lambda: None,
        hanging: Hanging | None = None,
        granted: Callable[[Sequence[Claimed]], None] | None = None,
    ) -> None:
        self._backend = backend
        self._like = like
        self._hanging = hanging
        self._granted = granted
        """Called with tasks before they may start."""
        self._buffer = buffer
        self._prefetch = prefetch
        self._poll_interval = poll_interval
        self._observer = observer
        self._doubt = doubt
        """Called when the store does not know the last claim."""
        self._waits = backend.driver.remote
        self._heard: deque[str] = deque([""], HEARD)
        """Ids of the last requests that were answered with tasks; each claim names the newest."""
        self.asked = 0
        """How many claims have been started."""
        self.answered = 0
        """How many of them are over, with their tasks in the buffer."""

    async def run(self) -> None:
        """Claim until cancelled. Raises WorkerGone when the worker has been declared dead."""
        wakeup = await listen(self._backend.driver)
        try:
            room = self._room()
            claim = self._start_claim(room)
            while True:
                grant = NOTHING if claim is None else await self._finish_claim(claim)
                if not grant.tasks:
                    self.answered += claim is not None
                    if claim is not None and room.slots:
                        await self._rest(wakeup, grant.next_due_in)
                    else:
                        # With a free slot the worker may get tasks that are not given ahead.
                        await self._buffer.changed()
                    room = self._room()
                    claim = self._start_claim(room)
                    continue
                room = self._room(arriving=len(grant.tasks))
                if len(grant.tasks) <= self._buffer.idle:
                    self._put(grant)
                    claim = self._start_claim(room)
                else:
                    claim = self._start_claim(room)
                    # Only after the claim was sent, which these tasks would delay: the store finds
                    # the next tasks while these run.
                    asyncio.get_running_loop().call_soon(self._put, grant)
        finally:
            await wakeup.aclose()

    def _room(self, arriving: int = 0) -> Room:
        """Return what there is room for. `arriving` tasks are about to enter the buffer."""
        waiting = len(self._buffer) + arriving
        slots = min(max(0, self._buffer.idle - waiting), limits.BATCH)
        return Room(slots, min(self._prefetch.ahead(waiting), max(0, AHEAD - slots)))

    def _start_claim(self, room: Room) -> asyncio.Future[Grant] | None:
        """Start a claim if there is room."""
        if not any(room):
            return None
        self.asked += 1
        held = frozenset() if self._hanging is None else self._hanging.held
        if not held:
            return asyncio.ensure_future(self._claim(room, self._like))
        return self._start_claim_without(held, room)

    def _start_claim_without(self, held: frozenset[str], room: Room) -> asyncio.Future[Grant]:
        """Start a claim while types are held back: for one task of such a type, if it is time to
        try one, else for tasks of the others."""
        assert self._hanging is not None
        probe = self._hanging.probe() if room.slots else None
        if probe is not None:
            like = msgspec.structs.replace(self._like, types=frozenset({probe}))
            return asyncio.ensure_future(self._claim(Room(1, 0), like, waits=False))
        types = (self._like.types or frozenset()) - held
        like = msgspec.structs.replace(self._like, types=types)
        return asyncio.ensure_future(self._claim(room, like))

    def _put(self, grant: Grant) -> None:
        self._buffer.put(grant.tasks)
        self.answered += 1

    async def _finish_claim(self, claim: asyncio.Future[Grant]) -> Grant:
        """Wait for a claim. If this is cancelled, tasks that the claim was given are kept all the
        same."""
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            if self._waits:
                # It may take long. Tasks that it is given later go back when the worker leaves.
                claim.cancel()
            await asyncio.wait([claim], timeout=LAST_CLAIM_SECONDS)
            if claim.done() and not (claim.cancelled() or claim.exception()):
                self._buffer.put(claim.result().tasks)
            claim.cancel()
            raise

    async def _claim(self, room: Room, like: Ask, *, waits: bool = True) -> Grant:
        # The same request until it is answered: a lost reply costs no task.
        ask = msgspec.structs.replace(
            like,
            request_id=new_id(),
            slots=room.slots,
            ahead=room.ahead,
            # Without free slots do not wait: soon there may be some, and then more tasks qualify.
            wait=WAIT_SECONDS if self._waits and waits and room.slots else 0.0,
            heard=self._heard[-1],
        )
        backoff = Backoff()
        while True:
            try:
                since = 0 if self._observer is None else self._observer.now()
                grant = await self._backend.run(self._backend.ops.claim(ask))
            except StoreError as error:
                logger.warning("Cannot claim tasks: %s", error)
                await asyncio.sleep(backoff.next())
                continue
            given = ask.request_id if grant.request_id is None else grant.request_id
            if given != ask.request_id and (given in self._heard or not grant.tasks):
                # It is known, or nothing is left of it: let the store go on from there.
                self._doubt()
                self._heard.append(given)
                ask = msgspec.structs.replace(ask, heard=given)
                continue
            if grant.tasks:
                self._heard.append(given)
                if self._granted is not None:
                    self._granted(grant.tasks)
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
