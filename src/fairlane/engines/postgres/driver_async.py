"""asyncpg: for whoever has a loop.

An operation has one connection to itself from its first call to its last. A connection that is
left in doubt (a lost server, a cancelled caller) is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg import exceptions

from fairlane.core.errors import InvalidStoreURL, StoreError, StoreUnavailable
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import ROLLBACK, Query, Script
from fairlane.engines.postgres.pool import AsyncPool
from fairlane.engines.postgres.session import SESSION
from fairlane.engines.postgres.trouble import is_fatal, reported, unreachable

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection"

_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 40.0  # longer than the server's own limit: it should be the one to say so
_CLOSE_SECONDS = 2.0

_LOST = (OSError, TimeoutError, exceptions.InterfaceError, exceptions.InternalClientError)


class AsyncSide:
    """Connections of one loop."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self._pool = AsyncPool(self.open, _close, size)

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
        except exceptions.InvalidCachedStatementError as error:
            # Someone migrated the schema meanwhile: a new connection knows nothing of the old one.
            raise StoreUnavailable(
                f"The schema of the {self._address.name} has just changed."
            ) from error
        except exceptions.PostgresError as error:
            raise reported(_state_of(error), str(error), self._address.name) from error
        except _LOST as error:
            raise unreachable(error, self._address.name) from error

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
        try:
            connection: Connection = await asyncpg.connect(
                self._address.url_for_asyncpg,
                timeout=_CONNECT_SECONDS,
                command_timeout=_COMMAND_SECONDS,
                # Claims of many streams are long, and worth being prepared; plans do not age.
                max_cacheable_statement_size=0,
                max_cached_statement_lifetime=0,
                statement_cache_size=256,
            )
        except exceptions.PostgresError as error:
            raise reported(_state_of(error), str(error), self._address.name) from error
        except (exceptions.ClientConfigurationError, ValueError) as error:
            said = f"The URL of the {self._address.name} is not understood: {error}."
            raise InvalidStoreURL(said) from error
        except _LOST as error:
            raise unreachable(error, self._address.name) from error
        try:
            await self.call(connection, Script(SESSION))
        except BaseException:
            self._pool.discard(connection)
            raise
        return connection

    async def listen(self, channel: str, heard: Callable[[], None]) -> AsyncListener:
        """A connection that does nothing but hear notifications."""
        connection = await self.open()
        try:
            await connection.add_listener(channel, lambda *_: heard())
        except (exceptions.PostgresError, *_LOST) as error:
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


def _state_of(error: exceptions.PostgresError) -> str:
    return getattr(error, "sqlstate", None) or ""


async def _close(connection: Connection) -> None:
    # What it was doing for a cancelled caller is first cancelled on the server, too. Whatever goes
    # wrong here, asyncpg gives up the socket.
    with suppress(exceptions.PostgresError, *_LOST):
        await connection.close(timeout=_CLOSE_SECONDS)
