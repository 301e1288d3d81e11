"""Operations on connections of callers and handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fairlane.core.errors import InvalidConnection
from fairlane.core.flow import Mode, Op, perform, perform_async
from fairlane.engines.postgres.caller_transactions.driver import (
    Asyncpg,
    AsyncPsycopg,
    AsyncSQLAlchemy,
    Link,
)
from fairlane.engines.postgres.caller_transactions.nesting import StoreIdentity, nest
from fairlane.engines.postgres.calls import Apart, Query, Script

T = TypeVar("T")


class PostgresJoined:
    """A caller's connection. Nothing is retried here: only the caller can repeat its transaction.

    `apart` and `apart_sync` perform operations outside its transaction; `borrow` is the statement
    that sets it up.
    """

    def __init__(
        self,
        link: Link,
        store: StoreIdentity,
        apart: Callable[[Op[Any]], Awaitable[Any]],
        apart_sync: Callable[[Op[Any]], Any],
        borrow: str,
    ) -> None:
        self._link = link
        self._store = store
        self._apart = apart
        self._apart_sync = apart_sync
        self._borrow = borrow

    async def run(self, op: Op[T]) -> T:
        link = self._link
        if not isinstance(link, Asyncpg | AsyncPsycopg | AsyncSQLAlchemy):
            raise InvalidConnection(
                "Calls on this connection block. Use submit_sync, or pass a connection for asyncio."
            )
        await link.begin()

        async def call(request: Query | Script | Apart) -> Any:
            if isinstance(request, Apart):
                return await self._apart(_op(request))
            return await link.call(request)

        return await perform_async(nest(op, self._store, self._borrow), call)

    def run_sync(self, op: Op[T]) -> T:
        link = self._link
        if isinstance(link, Asyncpg | AsyncPsycopg | AsyncSQLAlchemy):
            raise InvalidConnection(
                "Calls on this connection are awaited. Use await submit, or pass a connection that "
                "blocks."
            )
        link.begin()

        def call(request: Query | Script | Apart) -> Any:
            if isinstance(request, Apart):
                return self._apart_sync(_op(request))
            return link.call(request)

        return perform(nest(op, self._store, self._borrow), call)


class PostgresTransaction:
    """A transaction that a handler's writes and the task's completion share."""

    def __init__(self, connection: Any, joined: PostgresJoined) -> None:
        self._connection = connection
        self._joined = joined

    @property
    def connection(self) -> Any:
        """Return the connection of asyncpg, with the settings of the role and the database."""
        return self._connection

    async def run(self, op: Op[T]) -> T:
        return await self._joined.run(op)


def _op(request: Apart) -> Op[Any]:
    return Op("apart", Mode.WRITE, request.flow)
