"""The Redis driver: one side for asyncio, one for threads.

redis-py opens connections (TLS, passwords, unix sockets) and reads replies. Its own retries are
off: operations are safe to repeat, and `persist` retries them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from fairlane.backoff import persist, persist_async
from fairlane.core.backend import Durability
from fairlane.core.errors import NotSupported
from fairlane.core.flow import Op
from fairlane.engines.redis.address import Address
from fairlane.engines.redis.calls import Argument, Command, Run
from fairlane.engines.redis.driver_async import AsyncSide
from fairlane.engines.redis.driver_sync import SyncSide
from fairlane.engines.redis.durability import durability
from fairlane.engines.redis.wakeup import RedisWakeup

__all__ = ["Argument", "Command", "RedisDriver", "Run"]

T = TypeVar("T")

_NO_TRANSACTIONS = (
    "Redis has no transactions that a caller can join: the writes of a handler and the change of "
    "its task are not atomic. Submit with an idempotency key, and write so that a repetition does "
    "no harm."
)


class RedisDriver:
    """Perform operations on a Redis or Valkey server, or on the master that Sentinels name."""

    remote = False
    lock_file = None

    def __init__(
        self, url: str, *, verify: Callable[[], Op[None]], channel: str, patience: float = 10.0
    ) -> None:
        self._address = Address(url)
        self._async = AsyncSide(self._address, verify)
        self._sync = SyncSide(self._address, verify)
        self._channel = channel
        self._patience = patience

    async def run(self, op: Op[T]) -> T:
        return await persist_async(
            lambda: self._async.attempt(op), op.patience(self._patience), op.pause
        )

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._sync.attempt(op), op.patience(self._patience), op.pause)

    def join(self, connection: Any) -> NoReturn:  # noqa: ARG002
        raise NotSupported(_NO_TRANSACTIONS)

    def transaction(self) -> NoReturn:
        raise NotSupported(_NO_TRANSACTIONS)

    def transaction_sync(self) -> NoReturn:
        raise NotSupported(_NO_TRANSACTIONS)

    def serve_worker(self, worker_id: str, lease: float) -> None:
        """Do nothing: a connection holds no locks."""

    async def listen(self) -> RedisWakeup:
        wakeup = RedisWakeup(lambda: self._async.subscribe(self._channel))
        await wakeup.wait_for_first_attempt()
        return wakeup

    async def durability(self) -> Durability:
        return await self.run(durability(self._address.sentinels is not None))

    async def aclose(self) -> None:
        await self._async.aclose()
        self._sync.close()

    def close(self) -> None:
        self._async.close()
        self._sync.close()
