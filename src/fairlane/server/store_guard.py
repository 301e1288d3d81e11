"""The store as requests reach it: whoever asks hears within a second that it is away.

Errors of a store are waited out for a moment, as everywhere. A store that says nothing at all
(frozen, cut off) looks like one that has much to do: so when a call takes long, the store is asked
something easy. If that is not answered either, everyone who waits is told, and nobody else has to
wait: until the store answers again, one question at a time is all it gets.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple, TypeVar

from fairlane.client.app import Fairlane
from fairlane.core.backend import Driver
from fairlane.core.errors import StoreError, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.store import Operations

logger = logging.getLogger("fairlane.server")

T = TypeVar("T")

PATIENCE: Final = 0.8
"""Seconds for which errors of the store are waited out."""
LONG: Final = 0.3
"""A call that takes so many seconds raises doubts."""
EASY: Final = 0.4
"""A store that needs so many seconds for something easy is as good as away."""
LATE: Final = 0.1
"""What came in time may be noticed late, in a process that was busy with itself."""
SEEK: Final = 2.0
"""A question to a store that is away may have gone astray after so many seconds."""
REST: Final = 0.25
"""After a call that was refused in spite of all patience, others like it need not be made."""


class _Refusal(NamedTuple):
    error: StoreUnavailable
    until: float


class StoreGuard:
    """Performs operations on behalf of the requests of one server process."""

    def __init__(self, app: Fairlane) -> None:
        self._app = app
        self._waiting: dict[asyncio.Timeout, float] = {}
        """Calls that are under way, and when they began; the first is the oldest."""
        self._refusals: dict[str, _Refusal] = {}
        """By the operation's name: a store that takes no new tasks may well take results."""
        self._heard = float("-inf")
        self._away = False
        self._timer: asyncio.TimerHandle | None = None
        self._doubting: asyncio.Task[None] | None = None

    @property
    def ops(self) -> Operations:
        """What can be asked of the store."""
        return self._app.backend.ops

    @property
    def driver(self) -> Driver:
        """How it gets there."""
        return self._app.backend.driver

    async def run(self, op: Op[T]) -> T:
        """Perform an operation. Raises StoreUnavailable, within a second, if the store is away."""
        loop = asyncio.get_running_loop()
        self._check(op.name, loop.time())
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._waiting[limit] = loop.time()
                self._watch(loop)
                result = await self._app.run(op.within(PATIENCE))
        except TimeoutError:
            raise StoreUnavailable("The store does not answer.") from None
        except StoreUnavailable as error:
            logger.warning("The store is in trouble: %s", error)
            self._refusals[op.name] = _Refusal(error, loop.time() + REST)
            raise
        finally:
            self._waiting.pop(limit, None)
        self._heard = loop.time()
        return result

    async def stop(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._doubting is not None:
            self._doubting.cancel()
            await asyncio.wait([self._doubting])

    def _check(self, name: str, now: float) -> None:
        if self._away:
            raise StoreUnavailable("The store does not answer.")
        refusal = self._refusals.get(name)
        if refusal is None:
            return
        if now < refusal.until:
            raise type(refusal.error)(refusal.error.message)
        del self._refusals[name]

    # -- doubts ------------------------------------------------------------------------------------

    def _watch(self, loop: asyncio.AbstractEventLoop, seconds: float = LONG) -> None:
        if self._timer is None and self._doubting is None:
            self._timer = loop.call_later(seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if not self._waiting:
            return
        age = loop.time() - next(iter(self._waiting.values()))
        if age < LONG:
            self._watch(loop, LONG - age)
        else:
            self._doubting = loop.create_task(self._doubt(loop))

    async def _doubt(self, loop: asyncio.AbstractEventLoop) -> None:
        began = loop.time()
        asking = loop.create_task(self._ask())
        try:
            if await _yes(asking, EASY) or await _yes(asking, LATE) or self._heard > began:
                return
            self._away = True
            logger.warning("The store does not answer: requests are refused until it does.")
            for limit in self._waiting:
                limit.reschedule(loop.time())
            while not await _yes(asking, SEEK):
                asking.cancel()
                await asyncio.sleep(LATE)
                asking = loop.create_task(self._ask())
            logger.warning("The store answers again.")
        finally:
            asking.cancel()
            self._away = False
            self._doubting = None
            if self._waiting:
                self._watch(loop)

    async def _ask(self) -> bool:
        """Whether the store answers. A task that is not there is looked for where others are."""
        try:
            await self._app.run(self.ops.get([new_id()]).within(EASY))
        except StoreUnavailable:
            return False
        except StoreError:
            return True  # it does, if only to complain
        return True


async def _yes(asking: asyncio.Task[bool], seconds: float) -> bool:
    """Whether the answer comes in time, and is yes."""
    await asyncio.wait([asking], timeout=seconds)
    return asking.done() and asking.result()
