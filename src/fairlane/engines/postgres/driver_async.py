"""asyncpg: for whoever has a loop.

An operation has one connection to itself from its first call to its last. A connection that is
left in doubt (a lost server, a cancelled caller) is thrown away.

Behind a pooler (PgBouncer in transaction mode) what a session remembers is not ours: nothing is
prepared, and sessions are not set up (transactions are: see within.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg import exceptions

from fairlane.core.errors import (
    FairlaneError,
    InvalidConnection,
    InvalidStoreURL,
    StoreError,
    StoreUnavailable,
)
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import ROLLBACK, Query, Script
from fairlane.engines.postgres.errors import is_fatal, reported, unreachable
from fairlane.engines.postgres.pool import AsyncPool
from fairlane.engines.postgres.session import PROBE, SESSION

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection"

_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 40.0  # longer than the server's own limit: it should be the one to say so
_CLOSE_SECONDS = 2.0

LOST = (OSError, TimeoutError, exceptions.InterfaceError, exceptions.InternalClientError)


class AsyncSide:
    """Connections of one loop.

    `plain`: as the role and the database have them, for statements that are not ours.
    """

    def __init__(self, address: Address, size: int, *, plain: bool = False) -> None:
        self._address = address
        self._pool = AsyncPool(self.open, _close, size)
        self._session = PROBE if plain else SESSION
        self._command_seconds = None if plain else _COMMAND_SECONDS
        self.pooled = bool(address.pooled)
        """Whether a pooler stands in between; known once a connection is open."""

    async def use(self, conversation: Callable[[Connection], Awaitable[T]]) -> T:
        """Lend a connection."""
        connection = await self._pool.take()
        keep = False
        try:
            result = await conversation(connection)
            keep = True
        except Exception as error:
            keep = await self._recovered(connection, error)
            if is_fatal(error):
                self._pool.clear()
            raise
        finally:
            # A cancelled caller ends up here too, with a reply still to come.
            (self._pool.give if keep else self._pool.drop)(connection)
        return result

    async def call(self, connection: Connection, request: Query | Script) -> Any:
        """One call of a flow."""
        try:
            if isinstance(request, Script):
                return await connection.execute(request.sql)
            return await connection.fetch(request.sql, *request.parameters)
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error

    async def _recovered(self, connection: Connection, error: Exception) -> bool:
        """Whether the connection is fit for others after an error."""
        if is_fatal(error) or connection.is_closed():
            return False
        if connection.is_in_transaction():
            try:
                await self.call(connection, ROLLBACK)
            except StoreError:
                return False
        return True

    async def open(self) -> Connection:
        """A new connection, set up."""
        connection = await self._connect()
        if self.pooled:
            return connection
        # A pooler may be trusted to lend a session for as long as we are connected.
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
                # Claims of many streams are long, and worth being prepared; plans do not age.
                max_cacheable_statement_size=0,
                max_cached_statement_lifetime=0,
                statement_cache_size=0 if self.pooled else 256,
                server_settings={"application_name": "fairlane"},
            )
        except (exceptions.ClientConfigurationError, ValueError) as error:
            said = f"The URL of the {self._address.name} is not understood: {error}."
            raise InvalidStoreURL(said) from error
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error
        return connection

    async def begin(self) -> tuple[Connection, Any]:
        """A connection in a transaction, and that; `transaction` ends it."""
        connection = await self._pool.take()
        # Not by a statement: the handler may want to nest transactions of asyncpg's into it.
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
        """Commits what was begun at the end of the block, or rolls it back."""
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
            # A cancelled handler ends up here too: closing the connection rolls back.
            clean = False
            try:
                clean = keep and await self._is_clean(connection)
            finally:
                (self._pool.give if clean else self._pool.drop)(connection)

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        try:
            await end()
        except (exceptions.PostgresError, *LOST) as error:
            raise translated(error, self._address.name) from error

    async def _is_clean(self, connection: Connection) -> bool:
        """Whether nothing of a handler's is left in a session."""
        if connection.is_closed():
            return False
        if not self.pooled:  # else it is not a session of ours
            try:
                await connection.reset(timeout=_CLOSE_SECONDS)
            except (exceptions.PostgresError, *LOST):
                return False
        return True

    async def listen(self, channel: str, heard: Callable[[], None]) -> AsyncListener | None:
        """A connection that does nothing but hear notifications; None where none can."""
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
    """A connection that hears notifications."""

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
            "The transaction was ended inside its block: leave that to the end of the block."
        )


def translated(error: BaseException, store: str) -> FairlaneError:
    """What asyncpg raised, as the error that users read."""
    if isinstance(error, exceptions.InvalidCachedStatementError):
        # Someone migrated the schema meanwhile: a new connection knows nothing of the old one.
        return StoreUnavailable(f"The schema of the {store} has just changed.")
    if isinstance(error, exceptions.PostgresError):
        return reported(getattr(error, "sqlstate", None) or "", str(error), store)
    return unreachable(error, store)


async def _close(connection: Connection) -> None:
    # What it was doing for a cancelled caller is first cancelled on the server, too. Whatever goes
    # wrong here, asyncpg gives up the socket.
    with suppress(exceptions.PostgresError, *LOST):
        await connection.close(timeout=_CLOSE_SECONDS)
