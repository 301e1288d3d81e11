"""Hints that there is work.

NOTIFY makes all commits of a server queue up behind each other, so it is sent after the fact, by
itself, and only when someone waits: a waiter holds a shared advisory lock, and whoever gets that
lock for itself knows that nobody does. Submissions look for waiters within their own statement, so
that they cost no further round trip while everyone is busy. At most one hint is under way in a
process.

Behind a pooler neither notifications nor locks of a session reach anyone: a waiter there looks for
work by itself, every second or so.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from fairlane.core.errors import StoreError
from fairlane.engines.postgres.calls import WAITERS
from fairlane.engines.waiters import Waiters

CHANNEL = "fairlane"

LISTEN = f"LISTEN {CHANNEL}"
HOLD = f"SELECT pg_advisory_lock_shared({WAITERS})"
RELEASE = "SELECT pg_advisory_unlock_all()"  # it may have been taken twice, by a cancelled call
ANNOUNCE = f"""
SELECT CASE
    WHEN pg_try_advisory_lock({WAITERS}) THEN pg_advisory_unlock({WAITERS})::text
    ELSE set_config('synchronous_commit', 'off', true) || pg_notify('{CHANNEL}', '')::text
END
"""

_BUSY_SECONDS = 1.0
"""A waiter that has not waited for so long is busy: nobody need notify it."""

_COMMIT_SECONDS = 0.1
_LONGEST_PAUSE = 10.0
_POLL_SECONDS = 1.0


class Background:
    """Does one thing in a loop, again and again, behind the back of whoever asks for it."""

    def __init__(self, deed: Callable[[], Awaitable[object]]) -> None:
        self._deed = deed
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        # One that is under way may have begun too early for whoever asks now.
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._do())

    async def _do(self) -> None:
        while self._again:
            self._again = False
            with suppress(StoreError):
                await self._deed()

    async def aclose(self) -> None:
        """Let what is under way arrive."""
        if self._task is not None and not self._task.get_loop().is_closed():
            await asyncio.wait({self._task}, timeout=1.0)
            self._task.cancel()
            await asyncio.wait({self._task})


class Errand:
    """Does one thing for threads: one of those who ask for it does it for all."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self._deed = deed
        self._again = False
        self._turn = threading.Lock()

    def ask(self) -> None:
        self._again = True
        while self._again and self._turn.acquire(blocking=False):
            try:
                self._again = False
                with suppress(StoreError):
                    self._deed()
            finally:
                self._turn.release()


class Listener(Protocol):
    """A connection that hears notifications."""

    gone: asyncio.Event
    """Set once the connection has ended."""

    async def execute(self, sql: str) -> None:
        """Say something on it."""

    async def aclose(self) -> None:
        """End it."""


class PostgresWakeup:
    """Hints from this process at once, from others by notifications."""

    def __init__(
        self, waiters: Waiters, connect: Callable[[Callable[[], None]], Awaitable[Listener | None]]
    ) -> None:
        self._waiters = waiters
        self._connect = connect
        self._event = asyncio.Event()
        self._entry = waiters.add(self._event)
        self._turn = asyncio.Lock()
        self._listener: Listener | None = None
        self._holding = False
        self._waiting = False
        self._deaf = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Listen, or keep trying to."""
        with suppress(StoreError):
            await self._open()
        self._spawn(self._keep())

    async def wait(self, seconds: float) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        limit = random.uniform(0.5, 1) * _POLL_SECONDS if self._deaf else seconds
        self._waiting = True
        try:
            async with asyncio.timeout(min(seconds, limit)):
                if self._listener is not None and not self._holding:
                    # Nobody has notified us while we were busy: there may be work. Look again in
                    # a moment, for what was just being committed by someone who saw us busy.
                    await self._hold()
                    asyncio.get_running_loop().call_later(_COMMIT_SECONDS, self._event.set)
                    return True
                await self._event.wait()
        except TimeoutError:
            return limit < seconds  # a hint that we give ourselves
        finally:
            self._waiting = False
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_BUSY_SECONDS, lambda: self._spawn(self._release()))
        self._event.clear()
        return True

    async def aclose(self) -> None:
        self._waiters.remove(self._entry)
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._listener is not None:
            await self._listener.aclose()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self) -> None:
        """Go on listening, whatever happens to the connection."""
        ceiling = 0.1
        while not self._deaf:
            if self._listener is not None:
                await self._listener.gone.wait()
                self._listener, self._holding = None, False
            try:
                await self._open()
            except StoreError:
                await asyncio.sleep(random.uniform(0, ceiling))
                ceiling = min(2 * ceiling, _LONGEST_PAUSE)
            else:
                ceiling = 0.1
                self._event.set()  # who knows what was missed

    async def _open(self) -> None:
        listener = await self._connect(self._event.set)
        if listener is None:
            self._deaf = True
            return
        try:
            await listener.execute(HOLD)
        except BaseException:
            await listener.aclose()
            raise
        self._listener, self._holding = listener, True

    async def _hold(self) -> None:
        async with self._turn:
            if self._listener is not None and not self._holding:
                with suppress(StoreError):
                    await self._listener.execute(HOLD)
                    self._holding = True

    async def _release(self) -> None:
        async with self._turn:
            if self._listener is not None and self._holding and not self._waiting:
                self._holding = False
                with suppress(StoreError):
                    await self._listener.execute(RELEASE)
