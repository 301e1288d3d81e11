"""Connections of callers: which kinds there are, and how to perform calls on each.

SQLAlchemy is recognised by the names of its classes, and asked for the connection of its driver. It
begins a transaction with the first statement that it executes itself, so it executes one first.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import asyncpg
import psycopg
from asyncpg import exceptions
from asyncpg.pool import PoolConnectionProxy
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from fairlane.core.errors import InvalidConnection
from fairlane.engines.postgres.calls import Query, Script
from fairlane.engines.postgres.driver_async import LOST
from fairlane.engines.postgres.driver_async import translated as translated_async
from fairlane.engines.postgres.driver_sync import translated

T = TypeVar("T")

_ACCEPTED = (
    "A task can be submitted on a connection of psycopg or asyncpg, or on a Session, AsyncSession, "
    "Connection or AsyncConnection of SQLAlchemy that uses one of these drivers. Got a {}."
)
_BEGIN_FIRST = (
    "This connection has no open transaction, so each statement would be committed by itself. "
    "Begin a transaction first."
)
_CLOSED = "This connection is closed. Pass an open one."
_FIRST = "SELECT 1"


class SyncLink(Protocol):
    """A connection whose calls block."""

    def begin(self) -> None:
        """Check that a transaction is open. Raises InvalidConnection."""

    def call(self, request: Query | Script) -> Any:
        """Perform one call of a flow."""


class AsyncLink(Protocol):
    """A connection whose calls are awaited."""

    async def begin(self) -> None:
        """Check that a transaction is open. Raises InvalidConnection."""

    async def call(self, request: Query | Script) -> Any:
        """Perform one call of a flow."""


class Psycopg:
    """psycopg.Connection."""

    def __init__(self, connection: psycopg.Connection[Any], store: str) -> None:
        self._connection = connection
        self._store = store

    def begin(self) -> None:
        _check_psycopg(self._connection)

    def call(self, request: Query | Script) -> Any:
        # Not the caller's cursor, whose rows may be dicts. The caller decides whether to prepare.
        cursor = psycopg.RawCursor(self._connection, row_factory=tuple_row)
        try:
            if isinstance(request, Script):
                cursor.execute(request.sql, prepare=False)
                return None
            cursor.execute(request.sql, request.parameters, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise translated(error, self._store) from error
        finally:
            cursor.close()


class AsyncPsycopg:
    """psycopg.AsyncConnection."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], store: str) -> None:
        self._connection = connection
        self._store = store

    async def begin(self) -> None:
        _check_psycopg(self._connection)

    async def call(self, request: Query | Script) -> Any:
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=tuple_row)
        try:
            if isinstance(request, Script):
                await cursor.execute(request.sql, prepare=False)
                return None
            await cursor.execute(request.sql, request.parameters, binary=True)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise translated(error, self._store) from error
        finally:
            await cursor.close()


class Asyncpg:
    """asyncpg.Connection, or a connection of asyncpg's pool."""

    def __init__(self, connection: Any, store: str) -> None:
        self._connection = connection
        self._store = store

    async def begin(self) -> None:
        if self._connection.is_closed():
            raise InvalidConnection(_CLOSED)
        if not self._connection.is_in_transaction():
            raise InvalidConnection(_BEGIN_FIRST)

    async def call(self, request: Query | Script) -> Any:
        try:
            if isinstance(request, Script):
                return await self._connection.execute(request.sql)
            return await self._connection.fetch(request.sql, *request.parameters)
        except (exceptions.PostgresError, *LOST) as error:
            raise translated_async(error, self._store) from error


class SQLAlchemy:
    """A Session or Connection of SQLAlchemy."""

    def __init__(self, given: Any, store: str) -> None:
        self._given = given
        self._store = store
        self._link: SyncLink | None = None

    def begin(self) -> None:
        connection = self._given
        if _is(connection, _SESSIONS):
            connection = connection.connection()
        connection.exec_driver_sql(_FIRST)
        below = connection.connection.driver_connection
        if not isinstance(below, psycopg.Connection):
            raise InvalidConnection(_ACCEPTED.format(f"connection of {_name(below)}"))
        self._link = Psycopg(below, self._store)
        self._link.begin()

    def call(self, request: Query | Script) -> Any:
        assert self._link is not None
        return self._link.call(request)


class AsyncSQLAlchemy:
    """An AsyncSession or AsyncConnection of SQLAlchemy."""

    def __init__(self, given: Any, store: str) -> None:
        self._given = given
        self._store = store
        self._link: AsyncLink | None = None

    async def begin(self) -> None:
        connection = self._given
        if _is(connection, _ASYNC_SESSIONS):
            connection = await connection.connection()
        await connection.exec_driver_sql(_FIRST)
        below = (await connection.get_raw_connection()).driver_connection
        link = link_to(below, self._store)
        if not isinstance(link, Asyncpg | AsyncPsycopg):
            raise InvalidConnection(_ACCEPTED.format(f"connection of {_name(below)}"))
        self._link = link
        await link.begin()

    async def call(self, request: Query | Script) -> Any:
        assert self._link is not None
        return await self._link.call(request)


_SESSIONS = {"sqlalchemy.orm.session.Session", "sqlalchemy.orm.scoping.scoped_session"}
_ASYNC_SESSIONS = {
    "sqlalchemy.ext.asyncio.session.AsyncSession",
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session",
}
_CONNECTIONS = {"sqlalchemy.engine.base.Connection"}
_ASYNC_CONNECTIONS = {"sqlalchemy.ext.asyncio.engine.AsyncConnection"}

Link = Psycopg | AsyncPsycopg | Asyncpg | SQLAlchemy | AsyncSQLAlchemy


def link_to(connection: Any, store: str) -> Link:
    """Return the link for a connection. `store` names it in messages. Raises InvalidConnection."""
    if isinstance(connection, psycopg.Connection):
        return Psycopg(connection, store)
    if isinstance(connection, psycopg.AsyncConnection):
        return AsyncPsycopg(connection, store)
    if isinstance(connection, asyncpg.Connection | PoolConnectionProxy):
        return Asyncpg(connection, store)
    if _is(connection, _SESSIONS | _CONNECTIONS):
        return SQLAlchemy(connection, store)
    if _is(connection, _ASYNC_SESSIONS | _ASYNC_CONNECTIONS):
        return AsyncSQLAlchemy(connection, store)
    raise InvalidConnection(_ACCEPTED.format(_name(connection)))


def _is(thing: object, names: set[str]) -> bool:
    """Return whether one of these names is its class or a base class."""
    return any(f"{kind.__module__}.{kind.__qualname__}" in names for kind in type(thing).__mro__)


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _check_psycopg(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        raise InvalidConnection(_CLOSED)
    # Without autocommit, psycopg begins by itself.
    idle = connection.info.transaction_status is TransactionStatus.IDLE
    if idle and connection.autocommit:
        raise InvalidConnection(_BEGIN_FIRST)
