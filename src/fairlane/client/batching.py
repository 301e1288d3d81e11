"""Calls that are made at the same time share a round trip: `Batcher` sends, `ResultWaiter` polls.

The first item is sent at once. Items that arrive while it is under way form the next batch: low
latency when idle, large batches under load, and no timers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from fairlane.client.wait_notes import WaitNotes
from fairlane.core import limits
from fairlane.core.errors import Conflict, EventLoopRunning, InvalidInput
from fairlane.core.model import Task, TaskFields
from fairlane.core.states import TERMINAL
from fairlane.core.why import Reason

Q = TypeVar("Q")
A = TypeVar("A")
F = TypeVar("F", bound=TaskFields)

SendBatch = Callable[[Sequence[Q]], Coroutine[Any, Any, list[A]]]
"""Sends a batch; returns one answer for each item, in order."""


class Batcher(Generic[Q, A]):
    """Batches the items that the coroutines of one event loop send, `most` at a time.

    A caller that is alone sends its item directly: a future and an asyncio task for every item
    would cost as much as the call.
    """

    def __init__(self, send_batch: SendBatch[Q, A], most: int) -> None:
        self._send_batch = send_batch
        self._most = most
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._sending = False
        self._sender: asyncio.Task[None] | None = None
        self._shared = False
        """Whether the last batch held several items."""

    async def send(self, item: Q) -> A:
        """Send one item, possibly with others, and return its answer."""
        if not self._sending and not self._shared:
            return await self._send_alone(item)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((item, answer))
        if not self._sending:
            self._start_sender()
        return await answer

    async def _send_alone(self, item: Q) -> A:
        self._sending = True
        try:
            (answer,) = await self._send_batch([item])
            return answer
        finally:
            self._start_sender()

    def _start_sender(self) -> None:
        self._sending = bool(self._waiting)
        if self._sending:
            self._sender = asyncio.get_running_loop().create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: self._most]
                del self._waiting[: self._most]
                self._shared = len(batch) > 1
                await self._deliver(batch)
        finally:
            self._sending = False

    async def _deliver(self, batch: list[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._send_batch([item for item, _ in batch])
        except (Conflict, InvalidInput) as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            # A batch is all or none. Find the item at fault by halving, and accept the others.
            half = len(batch) // 2
            await self._deliver(batch[:half])
            await self._deliver(batch[half:])
        except BaseException as error:
            _fail(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, waiting), answer in zip(batch, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)


def _fail(batch: list[tuple[Q, asyncio.Future[A]]], error: BaseException) -> None:
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)


GetTasks = Callable[[Sequence[str]], Coroutine[Any, Any, list[Task | None]]]
GetReasons = Callable[[str], Coroutine[Any, Any, list[Reason] | None]]

_SHORTEST, _LONGEST = 0.002, 0.1
_REASONS_SECONDS = 1.0
"""How long the answer may take why a task waits: the results of others must not wait for it."""


class ResultWaiter:
    """Polls the store for all coroutines of one event loop that wait for a task to end.

    It polls often at first and after every task that ended, then less and less often. With `why`
    it logs after a while why results do not come.
    """

    def __init__(self, get: GetTasks, heads: GetTasks, why: GetReasons | None = None) -> None:
        self._get = get
        self._heads = heads
        self._why = why
        self._notes = WaitNotes()
        self._waiting: dict[str, list[asyncio.Future[Task | None]]] = {}
        self._polling: asyncio.Task[None] | None = None
        self._pause = _SHORTEST
        self._added = asyncio.Event()

    async def wait(self, task_id: str) -> Task | None:
        """Return the task once it has ended, or None if there is no such task."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Task | None] = loop.create_future()
        self._waiting.setdefault(task_id, []).append(answer)
        self._pause = _SHORTEST
        self._added.set()
        if self._polling is None:
            self._polling = loop.create_task(self._poll())
        try:
            return await answer
        finally:
            if answer.cancelled():
                self._remove(task_id, answer)

    async def _poll(self) -> None:
        try:
            while self._waiting:
                self._added.clear()
                try:
                    await self._poll_once()
                except Exception as error:  # noqa: BLE001 (raised in everyone who waits)
                    self._fail_all(error)
                    return
                if self._why is not None:
                    await self._note(self._why)
                await self._rest()
        finally:
            self._polling = None

    async def _rest(self) -> None:
        """Pause before the next poll, or until somebody else begins to wait."""
        pause, self._pause = self._pause, _longer(self._pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._added.wait()

    async def _note(self, why: GetReasons) -> None:
        task_id = self._notes.choose(self._waiting)
        if task_id is None:
            return
        with suppress(Exception):  # it was only a note
            async with asyncio.timeout(_REASONS_SECONDS):
                self._notes.log(task_id, await why(task_id))

    async def _poll_once(self) -> None:
        wanted = list(self._waiting)
        for start in range(0, len(wanted), limits.BATCH):
            ids = wanted[start : start + limits.BATCH]
            if len(ids) > limits.PAGE_READ:
                heads = zip(ids, await self._heads(ids), strict=True)
                ids = [task_id for task_id, head in heads if head is None or _has_ended(head)]
            for at in range(0, len(ids), limits.PAGE_READ):  # results can be large
                await self._answer(ids[at : at + limits.PAGE_READ])

    async def _answer(self, task_ids: Sequence[str]) -> None:
        for task_id, task in zip(task_ids, await self._get(task_ids), strict=True):
            if task is None or _has_ended(task):
                self._pause = _SHORTEST
                for answer in self._waiting.pop(task_id, ()):
                    if not answer.done():
                        answer.set_result(task)

    def _remove(self, task_id: str, answer: asyncio.Future[Task | None]) -> None:
        others = [each for each in self._waiting.get(task_id, ()) if each is not answer]
        if others:
            self._waiting[task_id] = others
        else:
            self._waiting.pop(task_id, None)

    def _fail_all(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for answers in waiting.values():
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)


def refuse_in_event_loop() -> None:
    """Raise EventLoopRunning if this thread runs an event loop.

    The task that is waited for may need this very loop, which would then wait for ever.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise EventLoopRunning


def wait_sync(
    get: Callable[[str], F | None],
    why: Callable[[str], list[Reason] | None],
    task_id: str,
    timeout: float | None,
) -> F | None:
    """`ResultWaiter.wait` for code without an event loop. Raises TimeoutError."""
    notes = WaitNotes()
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = _SHORTEST
    while True:
        task = get(task_id)
        if task is None or _has_ended(task):
            return task
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            pause = min(pause, left)
        if notes.choose((task_id,)) is not None:
            with suppress(Exception):  # it was only a note
                notes.log(task_id, why(task_id))
        time.sleep(pause)
        pause = _longer(pause)


def _has_ended(task: TaskFields) -> bool:
    return task.state in TERMINAL


def _longer(pause: float) -> float:
    return min(pause * 1.5, _LONGEST)
