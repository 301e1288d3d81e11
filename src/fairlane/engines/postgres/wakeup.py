"""Wake-ups: hints that there is work.

NOTIFY makes all commits of a server wait for each other. So it is sent in a transaction of its own,
after the commit, and only if a worker waits: waiting workers hold a shared advisory lock, and a
process that gets this lock exclusively knows that none waits. Submissions check that in their own
statement, which costs no round trip while all workers are busy. At most one notification is under
way in a process.

Behind a pooler there are neither notifications nor session locks: workers poll about every second.
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
RELEASE = "SELECT pg_advisory_unlock_all()"  # a cancelled call may have taken it twice
ANNOUNCE = f"""
SELECT CASE
    WHEN pg_try_advisory_lock({WAITERS}) THEN pg_advisory_unlock({WAITERS})::text
    ELSE set_config('synchronous_commit', 'off', true) || pg_notify('{CHANNEL}', '')::text
END
"""

_BUSY_SECONDS = 1.0
"""A worker that has not waited for this long is busy, and gives up the lock."""

_COMMIT_SECONDS = 0.1
_LONGEST_PAUSE = 10.0
_POLL_SECONDS = 1.0


class Background:
    """Calls a coroutine function in the background, for all requests that come in meanwhile."""

    def __init__(self, call: Callable[[], Awaitable[object]]) -> None:
        self._call = call
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def request(self) -> None:
        # A call that is under way may have begun too early for this request: call once more.
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._do())

    async def _do(self) -> None:
        while self._again:
            self._again = False
            with suppress(StoreError):
                await self._call()

    async def aclose(self) -> None:
        """Wait a second for a call that is under way, then cancel it."""
        if self._task is not None and not self._task.get_loop().is_closed():
            await asyncio.wait({self._task}, timeout=1.0)
            self._task.cancel()
            await asyncio.wait({self._task})


class Combined:
    """Calls a function for threads: one thread calls it for all that request it meanwhile."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._again = False
        self._turn = threading.Lock()

    def request(self) -> None:
        self._again = True
        while self._again and self._turn.acquire(blocking=False):
            try:
                self._again = False
                with suppress(StoreError):
                    self._call()
            finally:
                self._turn.release()


class Listener(Protocol):
    """A connection that receives notifications."""

    gone: asyncio.Event
    """Set once the connection has ended."""

    async def execute(self, sql: str) -> None:
        """Execute a statement."""

    async def aclose(self) -> None:
        """Close the connection."""


class PostgresWakeup:
    """Wakes a waiting worker: for this process at once, for others by notifications."""

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
        self._polls = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Start to listen, and keep listening in the background."""
        with suppress(StoreError):
            await self._open()
        self._spawn(self._keep())

    async def wait(self, seconds: float) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        limit = random.uniform(0.5, 1) * _POLL_SECONDS if self._polls else seconds
        self._waiting = True
        try:
            async with asyncio.timeout(min(seconds, limit)):
                if self._listener is not None and not self._holding:
                    # Without the lock nobody has notified us: there may be work. Look again in a
                    # moment, for tasks whose commit was under way while we did not have the lock.
                    await self._hold()
                    asyncio.get_running_loop().call_later(_COMMIT_SECONDS, self._event.set)
                    return True
                await self._event.wait()
        except TimeoutError:
            return limit < seconds  # polling: True so that the worker claims
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
        """Keep listening, and connect again whenever the connection is lost."""
        ceiling = 0.1
        while not self._polls:
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
                self._event.set()  # notifications may have been missed

    async def _open(self) -> None:
        listener = await self._connect(self._event.set)
        if listener is None:
            self._polls = True
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
