"""Long polls: workers that wait for tasks over HTTP.

A poll asks the store once. If there is nothing and the worker wants to wait, it joins a wait queue
(see `wait_line`). Claims run in asyncio tasks of their own, so that a request that is cancelled
during a claim loses nothing: tasks that cannot be delivered stay with the worker if it can repeat
the poll, and are given back otherwise. A poll answers "no tasks" only if that is certain: if the
store's reply got lost, it may have granted some.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from fairlane.backoff import Backoff, listen, warn
from fairlane.core.errors import StoreUnavailable, WorkerGone
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, Grant
from fairlane.server.claims import Claims
from fairlane.server.store_guard import StoreGuard
from fairlane.server.wait_line import Waiter, WaitLine

logger = logging.getLogger("fairlane.server")

HINT_SECONDS: Final = 60.0
LAST_SECONDS: Final = 2.0
"""How long claims in flight may take when the server stops."""
UNHEARD_CLAIMS: Final = 1_000

Profile = tuple[frozenset[str] | None, frozenset[str] | None, frozenset[str]]


class LongPolls:
    """All long polls of a server process."""

    def __init__(self, store: StoreGuard, stopping: asyncio.Event) -> None:
        self._store = store
        self._claims = Claims(store)
        self._stopping = stopping
        self._lines: dict[Profile, WaitLine] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unheard: OrderedDict[str, str] = OrderedDict()
        """By worker: the request id of a claim whose reply got lost, for polls without a request
        id."""
        self._hints = 0
        self._listening: list[asyncio.Task[None]] = []
        self._working: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many polls wait."""
        return sum(len(line) for line in self._lines.values())

    async def take(
        self,
        ask: Ask,
        seconds: float,
        left: Callable[[], Awaitable[None]],
        *,
        in_line: bool = True,
        begins: bool = True,
        repeats: bool = True,
    ) -> Grant:
        """Return tasks for a worker, within `seconds`; none if its client has left.

        Raises the store's error if it is not certain that there are none.

        `in_line`: False for a worker that gets no tasks, so that it does not ask for others.
        `begins`: the tasks count as started, for a worker that does not report starts.
        `repeats`: the worker repeats a lost poll with the same request id.
        """
        loop = asyncio.get_running_loop()
        waiter = Waiter(ask, begins=begins, repeats=repeats)
        leaving = loop.create_task(_end_of(left, waiter))
        seconds = 0.0 if self._stopping.is_set() else seconds
        self._spawn(self._begin(waiter, in_line=in_line and seconds > 0))
        timer = loop.call_later(seconds, waiter.expire)
        try:
            grant = await waiter.answer
            if grant.tasks and leaving.done():
                self._take_back(waiter, grant.tasks)
                return Grant([])
            return grant
        finally:
            leaving.cancel()
            timer.cancel()

    async def stop(self) -> None:
        """End all polls, and give back what was claimed for them."""
        self._dismiss()
        if self._working:
            await asyncio.wait(self._working, timeout=LAST_SECONDS)
        for task in (*self._working, *self._listening):
            task.cancel()
        await asyncio.gather(*self._working, *self._listening, return_exceptions=True)
        self._listening.clear()

    async def _begin(self, waiter: Waiter, *, in_line: bool) -> None:
        hints = self._hints
        try:
            grant = await self._look(waiter)
        except Exception as error:  # noqa: BLE001 (passed to the waiter)
            waiter.fail(error)
            return
        except BaseException:
            waiter.end()
            raise
        if grant is None or waiter.answer.done() or not in_line:
            return
        if self._stopping.is_set():
            waiter.expire()
            return
        line = self._line_of(waiter.ask)
        line.add(waiter, grant.next_due_in)
        if self._hints != hints:
            line.stir()  # one came during the claim

    def _line_of(self, ask: Ask) -> WaitLine:
        if not self._listening:
            loop = asyncio.get_running_loop()
            self._listening = [loop.create_task(work) for work in (self._listen(), self._watch())]
        profile = (ask.queues, ask.types, ask.capabilities)
        line = self._lines.get(profile)
        if line is None:
            line = self._lines[profile] = WaitLine(self._look, self._lines.__len__)
            self._spawn(self._keep(profile, line))
        return line

    async def _keep(self, profile: Profile, line: WaitLine) -> None:
        try:
            await line.run()
        finally:
            del self._lines[profile]

    # -- claiming ----------------------------------------------------------------------------------

    async def _look(self, waiter: Waiter) -> Grant | None:
        """Claim for a waiter, and pass it the grant; None if it does not wait any more."""
        worker_id = waiter.ask.worker_id
        # One claim at a time: the store remembers only a worker's last claim, so a lost one has to
        # be repeated before the next.
        async with self._turns.setdefault(worker_id, asyncio.Lock()):
            if waiter.answer.done():
                return None
            try:
                grant = await self._claim(waiter)
            except WorkerGone as error:
                waiter.fail(error)
                return None
            waiter.due_in = grant.next_due_in
            if grant.tasks and waiter.answer.done():
                self._take_back(waiter, grant.tasks)
            elif grant.tasks or grant.request_id is not None:
                self._hand_out(waiter, grant)
            elif waiter.expired:
                waiter.end()
            return grant

    async def _claim(self, waiter: Waiter) -> Grant:
        """Claim tasks. The store grants the same tasks again for the same request id: this recovers
        a grant whose reply got lost."""
        ask = waiter.ask
        if not waiter.repeats:
            unheard = self._unheard.pop(ask.worker_id, None)
            ask = msgspec.structs.replace(ask, request_id=unheard or new_id())
        waiter.looking = True
        try:
            grant = await self._claims.claim(ask)
        except WorkerGone:
            raise
        except Exception as error:
            waiter.doubt(error)
            if not waiter.repeats:
                self._unheard[ask.worker_id] = ask.request_id
                if len(self._unheard) > UNHEARD_CLAIMS:
                    self._unheard.popitem(last=False)
            raise
        except asyncio.CancelledError:
            waiter.fail(StoreUnavailable("The server stops, and the store has not answered yet."))
            raise
        finally:
            waiter.looking = False
        waiter.heard()
        return grant

    def _hand_out(self, waiter: Waiter, grant: Grant) -> None:
        room = waiter.ask.slots + waiter.ask.ahead
        # More than there is room for: the grant of an earlier poll whose reply got lost.
        tasks, rest = grant.tasks[:room], grant.tasks[room:]
        waiter.answer.set_result(msgspec.structs.replace(grant, tasks=tasks))
        if tasks and waiter.begins:
            self._spawn(self._claims.begin(tasks))
        if rest:
            self._spawn(self._claims.release(rest))

    def _take_back(self, waiter: Waiter, tasks: list[Claimed]) -> None:
        """Handle tasks that cannot be delivered. A worker that repeats the poll gets them, perhaps
        from another process; otherwise give them back."""
        if not waiter.repeats:
            self._spawn(self._claims.release(tasks))

    # -- hints -------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        wakeup = await listen(self._store.backend.driver)
        self._hint()  # hints may have been missed
        backoff = Backoff()
        try:
            while True:
                try:
                    hinted = await wakeup.wait(HINT_SECONDS)
                except Exception as error:  # noqa: BLE001 (logged and repeated)
                    warn(logger, "Cannot listen for work", error)
                    await asyncio.sleep(backoff.next())
                else:
                    backoff = Backoff()
                    if hinted:
                        self._hint()
        finally:
            await wakeup.aclose()

    def _hint(self) -> None:
        self._hints += 1
        for line in self._lines.values():
            line.stir()

    async def _watch(self) -> None:
        await self._stopping.wait()
        self._dismiss()

    def _dismiss(self) -> None:
        for line in self._lines.values():
            line.dismiss()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)


async def _end_of(left: Callable[[], Awaitable[None]], waiter: Waiter) -> None:
    await left()
    waiter.end()
