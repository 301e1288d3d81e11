"""asyncpg, for callers with an event loop.

An operation has one connection to itself from its first call to its last. A connection in an
unknown state (a lost server, a cancelled caller) is closed.

Behind a pooler (PgBouncer in transaction mode) sessions are shared: nothing is prepared, and each
transaction is set up instead of the session (see caller_transactions/nesting.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import asyncpg
from asyncpg import exceptions
from asyncpg.prepared_stmt import PreparedStatement

from fairlane.core.errors import (
    FairlaneError,
    InvalidConnection,
    InvalidStoreURL,
    StoreError,
    StoreUnavailable,
)
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, Query, Script
from fairlane.engines.postgres.errors import error_of, is_fatal, unreachable
from fairlane.engines.postgres.pool import AsyncPool
from fairlane.engines.postgres.session import NAME, PROBE, SESSION

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection"

_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 40.0  # longer than the server's own limit, whose error says more
_CLOSE_SECONDS = 2.0

_PREPARED_AT_MOST = 256
BARE = frozenset(request.sql for request in (BEGIN, COMMIT, ROLLBACK))
"""Sent as one message, without preparation."""

LOST = (OSError, TimeoutError, exceptions.InterfaceError, exceptions.InternalClientError)


class AsyncSide:
    """Connections of one loop, by asyncpg.

    `plain`: with the settings of the role and the database, for statements of handlers.
    """

    def __init__(self, address: Address, size: int, *, plain: bool = False) -> None:
        self._address = address
        self._pool = AsyncPool(self.open, _close, size)
        self._prepared: WeakKeyDictionary[Connection, dict[str, PreparedStatement]]
        self._prepared = WeakKeyDictionary()
        self._name = NAME
        self._session = PROBE if plain else SESSION
        self._command_seconds = None if plain else _COMMAND_SECONDS
        self.pooled = bool(address.pooled)
        """Whether a pooler is in between; known once a connection is open."""

    async def use(self, conversation: Callable[[Connection], Awaitable[T]]) -> T:
        """Call `conversation` with a connection."""
        connection = await self._pool.take()
        keep = False
        try:
            result = await conversation(connection)
            keep = True
        except Exception as error:
            keep = await self._recover(connection, error)
            if is_fatal(error):
                self._pool.clear()
            raise
        finally:
            # A cancelled caller gets here too: a reply may still be on its way.
            (self._pool.give if keep else self._pool.drop)(connection)
        return result

    async def begin_prepared(self, connection: Connection, statements: Iterable[str]) -> None:
        """Begin a transaction that is likely to need these statements.

        asyncpg prepares a statement in two steps. A process that stops between them in a
        transaction keeps its locks: to PostgreSQL the session is not idle, and no time limit before
        version 17 ends it. So statements are prepared before the transaction.
        """
        if not self.pooled:
            known = self._prepared.setdefault(connection, {})
            for sql in [sql for sql in statements if sql not in known]:
                if len(known) >= _PREPARED_AT_MOST:
                    del known[next(iter(known))]
                known[sql] = await self._prepare(connection, sql)
        await self.call(connection, BEGIN)

    async def _prepare(self, connection: Connection, sql: str) -> PreparedStatement:
        try:
            prepared: PreparedStatement = await connection.prepare(sql)
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error
        return prepared

    async def call(self, connection: Connection, request: Query | Script) -> Any:
        """Perform one call of a flow."""
        try:
            if isinstance(request, Script) or request.sql in BARE:
                return await connection.execute(request.sql)
            if connection.is_in_transaction():
                statement = self._prepared.get(connection, {}).get(request.sql)
                if statement is not None:
                    return await statement.fetch(*request.parameters)
            return await connection.fetch(request.sql, *request.parameters)
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error

    async def _recover(self, connection: Connection, error: Exception) -> bool:
        """Make a connection usable again after an error. Return whether it is."""
        if is_fatal(error) or connection.is_closed():
            return False
        if connection.is_in_transaction():
            try:
                await self.call(connection, ROLLBACK)
            except StoreError:
                return False
        return True

    def name(self, name: str) -> None:
        """Set what sessions are called. Those that are open and idle are replaced."""
        self._name = name
        self._pool.clear()

    async def open(self) -> Connection:
        """Open a connection and set up its session."""
        connection = await self._connect()
        if self.pooled:
            return connection
        # With pgbouncer=false the session is ours alone, even behind a pooler.
        pid = "pg_backend_pid()" if self._address.pooled is False else connection.get_server_pid()
        try:
            found = await self.call(connection, Script(self._session.format(pid=pid)))
        except BaseException:
            self._pool.discard(connection)
            raise
        if found != "SELECT 0":
            return connection
        self.pooled = True
        self._pool.discard(connection)
        return await self._connect()

    async def _connect(self) -> Connection:
        try:
            connection: Connection = await asyncpg.connect(
                self._address.url_for_asyncpg,
                timeout=_CONNECT_SECONDS,
                command_timeout=self._command_seconds,
                # Prepare even long statements (claims of many streams), and keep them.
                max_cacheable_statement_size=0,
                max_cached_statement_lifetime=0,
                statement_cache_size=0 if self.pooled else 256,
                server_settings={"application_name": self._name},
            )
        except (exceptions.ClientConfigurationError, ValueError) as error:
            raise InvalidStoreURL(
                f"The URL of the {self._address.name} cannot be parsed: {error}."
            ) from error
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error
        return connection

    async def begin(self) -> tuple[Connection, Any]:
        """Begin a transaction on a connection. Return both; `transaction` ends it."""
        connection = await self._pool.take()
        # Through asyncpg, not by a statement: the handler may nest asyncpg's transactions.
        transaction = connection.transaction(isolation="read_committed")
        try:
            await transaction.start()
        except BaseException as error:
            self._pool.drop(connection)
            if isinstance(error, exceptions.PostgresError | OSError | exceptions.InterfaceError):
                self._pool.clear()
                raise translated(error, self._address.name) from error
            raise
        return connection, transaction

    @asynccontextmanager
    async def transaction(self, begun: tuple[Connection, Any]) -> AsyncIterator[Connection]:
        """Commit the transaction at the end of the block, or roll it back."""
        connection, transaction = begun
        keep = False
        try:
            yield connection
            _check_open(connection)
            await self._end(transaction.commit)
            keep = True
        except Exception:
            if connection.is_in_transaction():
                with suppress(StoreError):
                    await self._end(transaction.rollback)
                    keep = True
            raise
        finally:
            # A cancelled handler gets here too: closing the connection rolls back.
            clean = False
            try:
                clean = keep and await self._clean(connection)
            finally:
                (self._pool.give if clean else self._pool.drop)(connection)

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        try:
            await end()
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error

    async def _clean(self, connection: Connection) -> bool:
        """Remove what a handler left in the session. Return whether the session is clean."""
        if connection.is_closed():
            return False
        if not self.pooled:  # else the session is shared, and the pooler cleans it
            try:
                await connection.reset(timeout=_CLOSE_SECONDS)
            except (exceptions.PostgresError, *LOST):
                return False
        return True

    async def listen(self, channel: str, heard: Callable[[], None]) -> AsyncListener | None:
        """Open a connection for notifications; None behind a pooler, where there are none."""
        connection = await self.open()
        if self.pooled:
            self._pool.discard(connection)
            return None
        try:
            await connection.add_listener(channel, lambda *_: heard())
        except (exceptions.PostgresError, *LOST) as error:
            self._pool.discard(connection)
            raise unreachable(error, self._address.name) from error
        return AsyncListener(connection, self)

    async def aclose(self) -> None:
        await self._pool.aclose()


class AsyncListener:
    """A connection that receives notifications."""

    def __init__(self, connection: Connection, side: AsyncSide) -> None:
        self.gone = asyncio.Event()
        self._connection = connection
        self._side = side
        connection.add_termination_listener(lambda _: self.gone.set())

    async def execute(self, sql: str) -> None:
        await self._side.call(self._connection, Query(sql))

    async def aclose(self) -> None:
        await _close(self._connection)


def _check_open(connection: Connection) -> None:
    if not connection.is_in_transaction():
        raise InvalidConnection(
            "The transaction was committed or rolled back inside its block. Leave that to the end "
            "of the block."
        )


def translated(error: BaseException, store: str) -> FairlaneError:
    """Return an error of asyncpg as the error that users see."""
    if isinstance(error, exceptions.InvalidCachedStatementError):
        # The schema was migrated: a new connection prepares its statements again.
        return StoreUnavailable(f"The schema of the {store} has just changed. Try again.")
    if isinstance(error, exceptions.PostgresError):
        return error_of(getattr(error, "sqlstate", None) or "", str(error), store)
    return unreachable(error, store)


async def _close(connection: Connection) -> None:
    # A statement that still runs for a cancelled caller is first cancelled on the server. Whatever
    # fails here, asyncpg closes the socket.
    with suppress(exceptions.PostgresError, *LOST):
        await connection.close(timeout=_CLOSE_SECONDS)
