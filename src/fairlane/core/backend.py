"""How operations get done: what every engine's driver offers, whichever library it is built on."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

from fairlane.core.flow import Op
from fairlane.core.store import Operations

T = TypeVar("T")


def is_server(url: str) -> bool:
    """Whether the URL of a store is that of a server, which has the store."""
    return url.partition(":")[0].lower() in {"http", "https"}


class Durability(msgspec.Struct, frozen=True):
    """What an acknowledged submission survives, as read from the engine's own settings.

    `warnings` are sentences about settings under which tasks can get lost.
    """

    engine: str
    settings: dict[str, str]
    warnings: tuple[str, ...] = ()


class Wakeup(Protocol):
    """A subscription to hints that there may be work. Hints get lost: always wait with a limit."""

    async def wait(self, seconds: float) -> bool:
        """True when hinted, False when that time passed without a hint."""

    async def aclose(self) -> None:
        """Stop listening."""


class Joined(Protocol):
    """A caller's own connection: what runs here takes effect when the caller commits, or never."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation on a connection whose calls are awaited."""

    def run_sync(self, op: Op[T]) -> T:
        """Perform an operation on a connection whose calls block."""


class Transaction(Protocol):
    """A transaction that a handler's writes and the task's completion share."""

    @property
    def connection(self) -> Any:
        """The engine's own connection, for the handler's writes."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation inside it."""


class Driver(Protocol):
    """Performs operations. Nothing is opened before the first one."""

    @property
    def remote(self) -> bool:
        """Whether the store is behind a server, which does its maintenance, and keeps a claim that
        may wait until there is a task."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation, waiting out short troubles of the store."""

    def run_sync(self, op: Op[T]) -> T:
        """The same from ordinary code."""

    def join(self, connection: Any) -> Joined:
        """Perform operations on a caller's own connection, inside the caller's transaction.

        Raises InvalidConnection for what is none that the engine knows, and NotSupported where
        there is no such thing.
        """

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction of the store's database. It commits at the end of the block, or rolls back
        when that raises. Raises NotSupported where there is no such thing.
        """

    async def listen(self) -> Wakeup:
        """Begin to receive hints about new work."""

    async def durability(self) -> Durability:
        """What the engine's settings promise."""

    async def aclose(self) -> None:
        """Let go of connections, threads and files."""

    def close(self) -> None:
        """The same from ordinary code."""


class Backend:
    """An opened engine: what can be asked (`ops`) and how it gets done (`run`)."""

    __slots__ = ("driver", "ops", "run", "run_sync")

    def __init__(self, ops: Operations, driver: Driver) -> None:
        self.ops = ops
        self.driver = driver
        self.run = driver.run
        self.run_sync = driver.run_sync

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.driver.aclose()
