"""A call of a task: `Prepared` before its submission, `Handle` afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from fairlane.core.compression import check_expanded
from fairlane.core.errors import InvalidResult, ResultTimeout, TaskFailed
from fairlane.core.model import Cancelled, Claimed, NewTask, Progress, Task
from fairlane.core.sealing import check_open
from fairlane.core.states import State
from fairlane.runtime.codecs import Codec, find, stored_with
from fairlane.runtime.values import decoded

R = TypeVar("R")


class Prepared(msgspec.Struct, Generic[R], frozen=True):
    """A call that is ready to be submitted, alone or with others."""

    task: NewTask
    hint: Any
    """The type that the result is converted to."""

    def within(self, parent: Claimed) -> Prepared[R]:
        """Return the call as part of a running task's trace, unless it has a trace of its own."""
        spec = self.task.spec
        if spec.trace_id is not None:
            return self
        spec = msgspec.structs.replace(
            spec,
            trace_id=parent.trace_id,
            traceparent=spec.traceparent or parent.spec.traceparent,
        )
        return Prepared(msgspec.structs.replace(self.task, spec=spec), self.hint)


class Application(Protocol):
    """The part of the application that submits calls."""

    payload_bytes: int
    """How large a payload may be."""
    codecs: dict[str, Codec]
    """The codecs that are registered, by name."""

    async def submit(self, call: Prepared[R]) -> Handle[R]: ...
    def submit_sync(self, call: Prepared[R]) -> Handle[R]: ...


class TaskSource(Protocol):
    """The part of the application that a handle needs."""

    codecs: dict[str, Codec]

    async def get(self, task_id: str) -> Task | None: ...
    async def cancel(self, task_id: str) -> Cancelled: ...
    async def ended(self, task_id: str) -> Task | None: ...
    def get_sync(self, task_id: str) -> Task | None: ...
    def cancel_sync(self, task_id: str) -> Cancelled: ...
    def ended_sync(self, task_id: str, timeout: float | None = None) -> Task | None: ...


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

    async def result(self, timeout: float | None = None) -> R:  # noqa: ASYNC109 (part of the API)
        """Wait up to `timeout` seconds (None: without limit), and return what the handler returned.

        Raises TaskFailed if the task did not complete, ResultTimeout if it has not ended yet.
        """
        try:
            async with asyncio.timeout(timeout):
                task = await self._app.ended(self.task_id)
        except TimeoutError:
            raise self._not_yet(timeout) from None
        return self._result_of(task)

    def result_sync(self, timeout: float | None = None) -> R:
        """Blocking twin of `result`. Raises EventLoopRunning where an event loop runs."""
        try:
            task = self._app.ended_sync(self.task_id, timeout)
        except TimeoutError:
            raise self._not_yet(timeout) from None
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

    def _not_yet(self, timeout: float | None) -> ResultTimeout:
        assert timeout is not None
        return ResultTimeout(f"Task {self.task_id} has not ended within {timeout:g} s: it goes on.")

    def _result_of(self, task: Task | None) -> R:
        value: R = result_of(task, self.task_id, self._hint, self._app.codecs)
        return value


def _status(task: Task | None) -> State | None:
    return None if task is None else task.state


def _progress(task: Task | None) -> Progress | None:
    return None if task is None else task.progress


def result_of(task: Task | None, task_id: str, hint: Any, codecs: Mapping[str, Codec]) -> Any:
    """Return the result of a task that has ended. Raises TaskFailed if it did not complete."""
    if task is None:
        raise TaskFailed(f"There is no task {task_id}: it was deleted, or never submitted here.")
    if task.state is State.COMPLETED:
        result = task.result or b"null"
        check_open(result)
        check_expanded(result)
        stored = stored_with(result)
        return (
            decoded(result, hint) if stored is None else _decode(stored.codec, stored.data, codecs)
        )
    why = f": {task.error.message}" if task.error is not None else ""
    raise TaskFailed(f"Task {task_id} is {task.state}{why}")


def _decode(name: str, data: Any, codecs: Mapping[str, Codec]) -> Any:
    codec = find(codecs, name).codec
    try:
        return codec.decode(data)
    except Exception as error:
        raise InvalidResult(f"The codec {name} cannot decode the result: {error}.") from error
