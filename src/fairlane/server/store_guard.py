"""The guard between requests and the store: a request learns within a second that the store is
away.

Errors of the store are waited out for a moment, as everywhere. A store that does not answer at all
(frozen, cut off) looks like a busy one. So when a call takes long, the guard probes the store with
a cheap read. If the probe gets no answer either, every waiting call fails, and new calls fail at
once. Until the store answers again, one probe at a time is all that it receives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from fairlane.core.backend import Backend
from fairlane.core.errors import StoreError, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.store import Operations

logger = logging.getLogger("fairlane.server")

T = TypeVar("T")

PATIENCE: Final = 0.8
"""Seconds for which errors of the store are waited out."""
LONG: Final = 0.3
"""Seconds after which a call that is still running triggers a probe."""
EASY: Final = 0.4
"""Seconds within which a store that is there answers a probe."""
LATE: Final = 0.1
"""Extra seconds for this process, which may be too busy to notice the answer in time."""
SEEK: Final = 2.0
"""Seconds after which a probe of a store that is away counts as lost, and is repeated."""
REST: Final = 0.25
"""Seconds for which calls of an operation fail at once after one of them failed."""


class _Failure(NamedTuple):
    error: StoreUnavailable
    until: float


class StoreGuard:
    """Performs operations for the requests of one server process.

    `prepare` migrates or verifies the store; it is called before the first operation.
    """

    def __init__(
        self, backend: Backend, prepare: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self.backend = backend
        self._prepare = prepare
        self._waiting: dict[asyncio.Timeout, float] = {}
        """Calls in flight, and when they began; the first is the oldest."""
        self._failures: dict[str, _Failure] = {}
        """By operation name: a store that takes no new tasks may still take results."""
        self._heard = float("-inf")
        self._away = False
        self._timer: asyncio.TimerHandle | None = None
        self._probing: asyncio.Task[None] | None = None

    @property
    def ops(self) -> Operations:
        """The operations of the store."""
        return self.backend.ops

    async def run(self, op: Op[T]) -> T:
        """Perform an operation. Raises StoreUnavailable, within a second, if the store is away."""
        loop = asyncio.get_running_loop()
        self._check(op.name, loop.time())
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._waiting[limit] = loop.time()
                self._watch(loop)
                if self._prepare is not None:
                    await self.prepare()
                result = await self.backend.run(op.within(PATIENCE))
        except TimeoutError:
            raise StoreUnavailable("The store does not answer.") from None
        except StoreUnavailable as error:
            logger.warning("The store is in trouble: %s", error)
            self._failures[op.name] = _Failure(error, loop.time() + REST)
            raise
        finally:
            self._waiting.pop(limit, None)
        self._heard = loop.time()
        return result

    async def prepare(self) -> None:
        """Migrate or verify the store, unless that is done."""
        if self._prepare is not None:
            await self._prepare()
            self._prepare = None

    async def stop(self) -> None:
        """Stop probing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    def _check(self, name: str, now: float) -> None:
        if self._away:
            raise StoreUnavailable("The store does not answer.")
        failure = self._failures.get(name)
        if failure is None:
            return
        if now < failure.until:
            raise type(failure.error)(failure.error.message)
        del self._failures[name]

    # -- probing -----------------------------------------------------------------------------------

    def _watch(self, loop: asyncio.AbstractEventLoop, seconds: float = LONG) -> None:
        if self._timer is None and self._probing is None:
            self._timer = loop.call_later(seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if not self._waiting:
            return
        age = loop.time() - next(iter(self._waiting.values()))
        if age < LONG:
            self._watch(loop, LONG - age)
        else:
            self._probing = loop.create_task(self._probe(loop))

    async def _probe(self, loop: asyncio.AbstractEventLoop) -> None:
        began = loop.time()
        asking = loop.create_task(self._ask())
        try:
            if await _succeeds(asking, EASY) or await _succeeds(asking, LATE):
                return
            if self._heard > began:
                return
            self._away = True
            logger.warning("The store does not answer: requests are refused until it does.")
            for limit in self._waiting:
                limit.reschedule(loop.time())
            while not await _succeeds(asking, SEEK):
                asking.cancel()
                await asyncio.sleep(LATE)
                asking = loop.create_task(self._ask())
            logger.warning("The store answers again.")
        finally:
            asking.cancel()
            self._away = False
            self._probing = None
            if self._waiting:
                self._watch(loop)

    async def _ask(self) -> bool:
        """Return whether the store answers: read a task that does not exist, where tasks are."""
        try:
            await self.backend.run(self.ops.get([new_id()]).within(EASY))
        except StoreUnavailable:
            return False
        except StoreError:
            return True  # an error is an answer
        return True


async def _succeeds(asking: asyncio.Task[bool], seconds: float) -> bool:
    """Return whether the result comes in time, and is True."""
    await asyncio.wait([asking], timeout=seconds)
    return asking.done() and asking.result()
