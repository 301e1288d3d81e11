"""Workers that wait for tasks over HTTP.

A poll asks the store once. If there is nothing and the worker would wait, it stands in line (see
`lines`). Claims are made in tasks of their own, so that a request that is given up in the middle of
one loses nothing: what can no longer be delivered is there for whoever repeats it, and is given
back if nobody can. And whoever is told that there is nothing can be sure of it: when the store's
answer got lost, it may have given something.
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
"""How long claims that are under way may take when the server stops."""
REMEMBERED: Final = 1_000

Profile = tuple[frozenset[str] | None, frozenset[str] | None, frozenset[str]]


class LongPolls:
    """All polls of a server process."""

    def __init__(self, store: StoreGuard, stopping: asyncio.Event) -> None:
        self._store = store
        self._claims = Claims(store)
        self._stopping = stopping
        self._lines: dict[Profile, WaitLine] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unheard: OrderedDict[str, str] = OrderedDict()
        """By worker: under which id the store may have given it something that nobody heard of,
        since it was asked on behalf of a poll that has no id of its own."""
        self._hints = 0
        self._listening: list[asyncio.Task[None]] = []
        self._working: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many stand in line."""
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
        """Tasks for a worker, within so many seconds; none if its client has left meanwhile.

        Raises what the store raised if it is not known whether there were any.

        `in_line`: False for one that is not to get any, so that it does not look for others.
        `begins`: what it gets runs from then on, for it does not know that there is a call to say
        so.
        `repeats`: it asks again under the same id when it was not told.
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
        """Nobody waits any more; what was claimed meanwhile is given back."""
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
        except Exception as error:  # noqa: BLE001 (told to whoever waits)
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
            line.stir()  # while the claim was under way

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
        """Claim for a waiter, and let it know; None if it is not to have anything any more."""
        worker_id = waiter.ask.worker_id
        # One at a time: the store knows a worker's last claim only, so what may have got lost has
        # to be asked for again before anything else is.
        async with self._turns.setdefault(worker_id, asyncio.Lock()):
            if waiter.answer.done():
                return None
            try:
                grant = await self._asked(waiter)
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

    async def _asked(self, waiter: Waiter) -> Grant:
        """What the store gives. Asked twice under one id it gives the same: that is how an answer
        that got lost is had again."""
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
                if len(self._unheard) > REMEMBERED:
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
        # More than there is room for are those of an earlier poll, of which nobody had heard.
        tasks, rest = grant.tasks[:room], grant.tasks[room:]
        waiter.answer.set_result(msgspec.structs.replace(grant, tasks=tasks))
        if tasks and waiter.begins:
            self._spawn(self._claims.begin(tasks))
        if rest:
            self._spawn(self._claims.release(rest))

    def _take_back(self, waiter: Waiter, tasks: list[Claimed]) -> None:
        """Tasks could not be delivered. Who repeats the poll gets them, perhaps from another
        process: they are his until then."""
        if not waiter.repeats:
            self._spawn(self._claims.release(tasks))

    # -- hints -------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        wakeup = await listen(self._store.driver)
        self._hint()  # who knows what was missed
        backoff = Backoff()
        try:
            while True:
                try:
                    hinted = await wakeup.wait(HINT_SECONDS)
                except Exception as error:  # noqa: BLE001 (it goes on)
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
