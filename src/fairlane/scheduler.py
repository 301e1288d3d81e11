"""Firing schedules: a tick is fired by one of many processes, and by another one if that is late.

Every worker and server runs a scheduler. The one that leads (see `maintenance`) fires a tick when
it is due. The others fire it if it is still there a little later, because the leader was killed or
suspended or waits for something. The store handles every tick once, however many try.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

from fairlane.backoff import Backoff, jitter, warn
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.telemetry.ticks import TickLog

T = TypeVar("T")

logger = logging.getLogger("fairlane.schedules")

ROLE: Final = "schedules"
"""Of the one that fires what is late."""
LOOK_SECONDS: Final = 1.0
"""How often the leader looks for schedules that became due sooner than it knew."""
LATE_SECONDS: Final = 2.0
"""How late a tick is when others fire it, too."""
SPREAD_SECONDS: Final = 0.5
"""The others do not all try in the same moment."""
LEFT_SECONDS: Final = 60.0
"""How long a process leaves a schedule to others that it cannot fire, until it tries again."""
AGAIN_SECONDS: Final = 0.05
"""The pause after a schedule was due, but another process had fired it."""
CALL_SECONDS: Final = 10.0
"""How long the store may take to answer. A call that hangs must not stop all ticks."""
SWEEP_SECONDS: Final = 3_600.0
"""How often the leader puts all schedules in order. It reads and computes all of them."""


class Scheduler:
    """Fires the schedules of a store. `pace`: how often a process looks that does not lead."""

    def __init__(
        self,
        backend: Backend,
        pace: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._pace = pace
        self._clock = clock
        self._candidate = new_id()
        self._log = TickLog()
        self._leads_until = float("-inf")
        self._begun = asyncio.Event()
        self._sweep_at = float("-inf")
        self._left: dict[str, float] = {}
        """The schedules that it leaves to others, and until when."""
        self._sweeping: str | None = None
        """Where to continue, while a sweep is not at its end."""

    def lead(self, until: float) -> None:
        """Lead until a time on this process' clock, which may be over."""
        if not self._leads():
            self._sweep_at, self._sweeping = float("-inf"), None
            self._begun.set()
        self._leads_until = until

    def _leads(self) -> bool:
        return self._clock() < self._leads_until

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        backoff = Backoff(longest=self._pace)
        while True:
            self._begun.clear()
            try:
                wait = await self.step()
                backoff = Backoff(longest=self._pace)
            except Exception as error:  # noqa: BLE001 (whatever it is, other ticks will be due)
                warn(logger, "Schedules wait, and may be late", error)
                wait = backoff.next()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._begun.wait()  # who leads from now on has less time

    async def step(self) -> float:
        """Fire what is due. Return how many seconds to wait before the next step."""
        self._log.summarise()
        leads = self._leads()
        grace = 0.0 if leads else LATE_SECONDS
        left = self._left_to_others()
        due_in = await self._run(self._backend.ops.due_schedules(left))
        if due_in is not None and due_in + grace <= 0:
            if not leads and not await self._stands_in():
                return SPREAD_SECONDS
            fired = await self._run(self._backend.ops.fire_due(left))
            self._log.log(fired.handled)
            self._leave(fired.unknown)
            return 0.0 if fired.handled or fired.more else AGAIN_SECONDS
        if leads and await self._sweep():
            return 0.0
        longest = LOOK_SECONDS if leads else jitter(self._pace, 0.2)
        if due_in is None:
            return longest
        spread = 0.0 if leads else random.uniform(0.0, SPREAD_SECONDS)
        return min(longest, due_in + grace + spread)

    def _left_to_others(self) -> frozenset[str]:
        now = self._clock()
        self._left = {each: until for each, until in self._left.items() if until > now}
        return frozenset(self._left)

    def _leave(self, problems: Mapping[str, str]) -> None:
        """Leave schedules to others, such as those whose time zone is not known here.

        They stay due, so that others see that they are late. Here they hold up nothing.
        """
        self._log.log_unknown(problems)
        room = limits.SCHEDULE_PAGE - len(self._left)
        until = self._clock() + LEFT_SECONDS
        self._left |= dict.fromkeys(islice(problems, room), until)

    async def _stands_in(self) -> bool:
        """Return whether this is the one that helps out. Many that fire the same schedules at the
        same time would mostly repeat what another one has done already."""
        op = self._backend.ops.elect(ROLE, self._candidate, LATE_SECONDS)
        return await self._run(op)

    async def _sweep(self) -> bool:
        """Put some schedules in order if it is time. Return whether there are more.

        Ticks that become due meanwhile do not wait for the others.
        """
        if self._clock() < self._sweep_at:
            return False
        self._sweeping = await self._run(self._backend.ops.sweep_schedules(self._sweeping))
        if self._sweeping is None:
            self._sweep_at = self._clock() + jitter(SWEEP_SECONDS)
        return self._sweeping is not None

    async def _run(self, op: Op[T]) -> T:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self._backend.run(op)
        except TimeoutError:
            raise StoreUnavailable(f"No answer from the store within {CALL_SECONDS:g} s.") from None
