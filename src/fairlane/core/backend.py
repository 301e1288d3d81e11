"""How operations are performed: what the driver of every engine offers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

from fairlane.core.flow import Op
from fairlane.core.store import Operations

T = TypeVar("T")


def is_server(url: str) -> bool:
    """Return whether the URL names a Fairlane server rather than a database."""
    return url.partition(":")[0].lower() in {"http", "https"}


class Durability(msgspec.Struct, frozen=True):
    """What an acknowledged submission survives, as read from the engine's own settings.

    `warnings` are sentences about settings under which tasks can get lost.
    """

    engine: str
    settings: dict[str, str]
    warnings: tuple[str, ...] = ()


class Wakeup(Protocol):
    """Hints that there may be work. Hints get lost: always wait with a timeout."""

    async def wait(self, seconds: float) -> bool:
        """Return True on a hint, False if `seconds` pass without one."""

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
        """Whether the store is behind a server, which does the maintenance and lets claims wait."""

    @property
    def lock_file(self) -> str | None:
        """The file whose lock all processes need that write; None if the engine has none."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation. Retries while the store is briefly unavailable."""

    def run_sync(self, op: Op[T]) -> T:
        """Do the same from blocking code."""

    def join(self, connection: Any) -> Joined:
        """Perform operations on a caller's own connection, inside the caller's transaction.

        Raises InvalidConnection for what is none that the engine knows, and NotSupported where
        there is no such thing.
        """

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction of the store's database.

        It commits at the end of the block, and rolls back if the block raises. Raises NotSupported
        if the engine has no such transactions.
        """

    def transaction_sync(self) -> AbstractContextManager[Any]:
        """Do the same from blocking code, and yield the connection."""

    def serve_worker(self, worker_id: str, lease: float) -> None:
        """Name the worker that uses this driver, so that what it locks does not stay locked.

        On PostgreSQL its sessions end when it is declared dead.
        """

    async def listen(self) -> Wakeup:
        """Begin to receive hints about new work."""

    async def durability(self) -> Durability:
        """Return what the engine's settings promise."""

    async def aclose(self) -> None:
        """Close connections, threads and files."""

    def close(self) -> None:
        """Do the same from blocking code."""


class Backend:
    """An opened engine: its operations (`ops`), and how they are performed (`run`)."""

    __slots__ = ("driver", "has_tokens", "ops", "run", "run_sync")

    def __init__(self, ops: Operations, driver: Driver) -> None:
        self.ops = ops
        self.driver = driver
        self.run = driver.run
        self.run_sync = driver.run_sync
        self.has_tokens = False
        """Whether this process has seen that the store has tokens."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.driver.aclose()
