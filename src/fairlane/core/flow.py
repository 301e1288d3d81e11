"""Engine operations, written once and run in two colours.

An operation is a generator that yields calls (a statement, a script, a request) and is sent their
replies. It does no input or output itself, so the same code serves threads and asyncio, runs inside
a caller's own transaction, and can be stepped and aborted at every point by tests.

    @writes
    def settle(self, batch):
        rows = yield Statement(...)
        return [...]

    await backend.run(ops.settle(batch))       # or: backend.run_sync(ops.settle(batch))
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from enum import Enum
from functools import update_wrapper
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Self = TypeVar("Self")

Flow = Generator[Any, Any, T]
"""Yields calls, is sent replies, returns T."""


class Mode(Enum):
    """What an operation asks of the connection it runs on."""

    READ = "read"
    WRITE = "write"
    """Calls that are atomic one by one."""
    TRANSACTION = "transaction"
    """Several calls that take effect together."""
    SCHEMA = "schema"
    """Like a transaction, on a store that may not be ready for anything else."""


class Op(Generic[T_co]):
    """An operation that has not been performed yet.

    It can be performed again from the start: after a lost connection nobody knows whether the first
    try took effect, so every operation is written to be repeatable.
    """

    __slots__ = ("_limit", "_start", "mode", "name", "pause")

    def __init__(
        self,
        name: str,
        mode: Mode,
        start: Callable[[], Flow[T_co]],
        limit: float = math.inf,
        pause: float = math.inf,
    ) -> None:
        self.name = name
        self.mode = mode
        self._start = start
        self._limit = limit
        self.pause = pause
        """The longest pause between two attempts while the store is unavailable."""

    def within(self, seconds: float, pause: float = math.inf) -> Op[T_co]:
        """Return the same operation with limits on retries while the store is unavailable: how long
        it is repeated, and the longest pause in between."""
        return Op(self.name, self.mode, self._start, seconds, pause)

    def patience(self, usual: float) -> float:
        """Return how many seconds to retry while the store is unavailable."""
        return min(self._limit, usual)

    def flow(self) -> Flow[T_co]:
        """Start the operation from the beginning."""
        return self._start()

    def __repr__(self) -> str:
        return f"<{self.mode.value} {self.name}>"


Method = Callable[Concatenate[Self, P], Flow[T]]
Operation = Callable[Concatenate[Self, P], Op[T]]


def _operation(mode: Mode, method: Method[Self, P, T]) -> Operation[Self, P, T]:
    def build(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> Op[T]:
        return Op(method.__name__, mode, lambda: method(self, *args, **kwargs))

    update_wrapper(build, method)
    return build


def reads(method: Method[Self, P, T]) -> Operation[Self, P, T]:
    """Mark an operation that changes nothing."""
    return _operation(Mode.READ, method)


def writes(method: Method[Self, P, T]) -> Operation[Self, P, T]:
    """Mark an operation each of whose calls is atomic by itself."""
    return _operation(Mode.WRITE, method)


def transacts(method: Method[Self, P, T]) -> Operation[Self, P, T]:
    """Mark an operation whose calls belong into one transaction."""
    return _operation(Mode.TRANSACTION, method)


def alters(method: Method[Self, P, T]) -> Operation[Self, P, T]:
    """Mark an operation on the schema itself."""
    return _operation(Mode.SCHEMA, method)


class Turn:
    """A call that asks for nothing, so that an event loop gives others a turn. A flow that computes
    for long yields `TURN` now and then."""

    def __await__(self) -> Generator[None, None, None]:
        yield


TURN: Final = Turn()


def perform(flow: Flow[T], call: Callable[[Any], Any]) -> T:
    """Run a flow on a driver whose calls block."""
    try:
        request = next(flow)
        while True:
            try:
                reply = None if request is TURN else call(request)
            except Exception as error:  # noqa: BLE001 (the flow says what it means)
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


async def perform_async(flow: Flow[T], call: Callable[[Any], Awaitable[Any]]) -> T:
    """Run a flow on a driver whose calls are awaited."""
    try:
        request = next(flow)
        while True:
            try:
                reply = await (TURN if request is TURN else call(request))
            except Exception as error:  # noqa: BLE001 (the flow says what it means)
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
