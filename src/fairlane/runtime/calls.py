"""`Handle`: a call of a task that was submitted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import ResultTimeout, TaskFailed
from fairlane.core.model import Cancelled, Progress
from fairlane.core.states import State
from fairlane.core.why import Reason
from fairlane.runtime.codecs import Codec
from fairlane.runtime.failures import failure_of
from fairlane.runtime.tasks import Task, value_of

R = TypeVar("R")

REASONS_SECONDS = 1.0
"""How long a result that did not come in time may take to find out why."""


class TaskSource(Protocol):
    """The part of the application that a handle needs."""

    codecs: dict[str, Codec]

    async def get(self, task_id: str) -> Task | None: ...
    async def cancel(self, task_id: str) -> Cancelled: ...
    async def ended(self, task_id: str) -> Task | None: ...
    async def why(self, task_id: str) -> list[Reason] | None: ...
    def get_sync(self, task_id: str) -> Task | None: ...
    def cancel_sync(self, task_id: str) -> Cancelled: ...
    def ended_sync(self, task_id: str, timeout: float | None = None) -> Task | None: ...
    def why_sync(self, task_id: str) -> list[Reason] | None: ...


class Handle(Generic[R]):
    """A submitted task, and the type that its result is converted to."""

    __slots__ = ("_app", "_hint", "known", "task_id")

    def __init__(self, app: TaskSource, task_id: str, hint: Any, *, known: bool = False) -> None:
        self._app = app
        self._hint = hint
        self.task_id = task_id
        self.known = known
        """Whether the task existed before: it has the same idempotency key, or was not unique."""

    def __repr__(self) -> str:
        return f"<Handle {self.task_id}>"

    async def result(self, timeout: Seconds | None = None) -> R:  # noqa: ASYNC109 (part of the API)
        """Wait for at most `timeout` (None: without limit), and return what the handler returned.

        Raises TaskFailed if the task did not complete, and ResultTimeout if it has not ended yet,
        with the reasons why it waits.
        """
        seconds = in_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                task = await self._app.ended(self.task_id)
        except TimeoutError:
            raise await not_yet(self._app, self.task_id, seconds) from None
        return self._result_of(task)

    def result_sync(self, timeout: Seconds | None = None) -> R:
        """Blocking twin of `result`. Raises EventLoopRunning where an event loop runs."""
        seconds = in_seconds(timeout)
        try:
            task = self._app.ended_sync(self.task_id, seconds)
        except TimeoutError:
            raise not_yet_sync(self._app, self.task_id, seconds) from None
        return self._result_of(task)

    async def status(self) -> State | None:
        """Return the task's state, or None if the task was deleted."""
        return _status(await self._app.get(self.task_id))

    def status_sync(self) -> State | None:
        """Blocking twin of `status`."""
        return _status(self._app.get_sync(self.task_id))

    async def progress(self) -> Progress | None:
        """Return the last progress that the handler reported."""
        return _progress(await self._app.get(self.task_id))

    def progress_sync(self) -> Progress | None:
        """Blocking twin of `progress`."""
        return _progress(self._app.get_sync(self.task_id))

    async def cancel(self) -> Cancelled:
        """Cancel the task. A running handler is cancelled too."""
        return await self._app.cancel(self.task_id)

    def cancel_sync(self) -> Cancelled:
        """Blocking twin of `cancel`."""
        return self._app.cancel_sync(self.task_id)

    def _result_of(self, task: Task | None) -> R:
        value: R = result_of(task, self.task_id, self._hint, self._app.codecs)
        return value


async def not_yet(app: TaskSource, task_id: str, waited: float | None) -> ResultTimeout:
    """Return the error for a task that has not ended in time, with the reasons why it waits."""
    found = None
    with suppress(Exception):  # the store may be away: the timeout is the news
        async with asyncio.timeout(REASONS_SECONDS):
            found = await app.why(task_id)
    return _not_yet(task_id, waited, found)


def not_yet_sync(app: TaskSource, task_id: str, waited: float | None) -> ResultTimeout:
    """Blocking twin of `not_yet`."""
    found = None
    with suppress(Exception):
        found = app.why_sync(task_id)
    return _not_yet(task_id, waited, found)


def _not_yet(task_id: str, waited: float | None, found: list[Reason] | None) -> ResultTimeout:
    assert waited is not None
    reasons = tuple(reason.message for reason in found or ())
    why = f" {reasons[0]}" if reasons else ""
    message = f"Task {task_id} has not ended within {waited:g} s: it goes on.{why}"
    return ResultTimeout(message, reasons=reasons)


def _status(task: Task | None) -> State | None:
    return None if task is None else task.state


def _progress(task: Task | None) -> Progress | None:
    return None if task is None else task.progress


def result_of(task: Task | None, task_id: str, hint: Any, codecs: Mapping[str, Codec]) -> Any:
    """Return the result of a task that has ended. Raises TaskFailed if it did not complete."""
    if task is None:
        raise TaskFailed(
            f"There is no task {task_id}: it was deleted, or never submitted here.",
            task_id=task_id,
        )
    if task.state is State.COMPLETED:
        return value_of(task.stored.result or b"null", hint, codecs)
    raise failure_of(task)
