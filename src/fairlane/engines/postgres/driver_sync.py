"""psycopg: for whoever has no loop. The same rules as in driver_async.py, for threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from fairlane.core.errors import FairlaneError, InvalidStoreURL, StoreError
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import ROLLBACK, Query, Script
from fairlane.engines.postgres.errors import is_fatal, reported, unreachable
from fairlane.engines.postgres.pool import Pool
from fairlane.engines.postgres.session import SESSION

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[Any]"

_CONNECT_SECONDS = 5
_SILENCE_MILLISECONDS = 40_000


class SyncSide:
    """Connections for threads."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self.pooled = bool(address.pooled)
        """Whether a pooler stands in between; known once a connection is open."""
        self._pool = Pool(self._open, _close, size)

    def use(self, conversation: Callable[[Connection], T]) -> T:
        """Lend a connection."""
        connection = self._pool.take()
        keep = False
        try:
            result = conversation(connection)
            keep = True
        except Exception as error:
            keep = self._recovered(connection, error)
            if is_fatal(error):
                self._pool.clear()
            raise
        finally:
            (self._pool.give if keep else self._pool.drop)(connection)
        return result

    def call(self, connection: Connection, request: Query | Script) -> Any:
        """One call of a flow."""
        try:
            if isinstance(request, Script):
                connection.execute(request.sql, prepare=False)
                return None
            cursor = connection.execute(
                request.sql, request.parameters, prepare=not self.pooled, binary=True
            )
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise translated(error, self._address.name) from error

    def _recovered(self, connection: Connection, error: Exception) -> bool:
        """Whether the connection is fit for others after an error."""
        if is_fatal(error) or connection.closed:
            return False
        if connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                self.call(connection, ROLLBACK)
            except StoreError:
                return False
        return True

    def _open(self) -> Connection:
        connection = self._connect()
        if self.pooled:
            return connection
        # A pooler may be trusted to lend a session for as long as we are connected.
        own = self._address.pooled is False
        pid = "pg_backend_pid()" if own else str(connection.info.backend_pid)
        try:
            cursor = connection.execute(SESSION.format(pid=pid))
            while cursor.nextset():
                pass
            self.pooled = cursor.rowcount == 0
        except psycopg.Error as error:
            connection.close()
            raise translated(error, self._address.name) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> Connection:
        try:
            connection: Connection = psycopg.connect(
                self._address.url,
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                connect_timeout=_CONNECT_SECONDS,
                tcp_user_timeout=_SILENCE_MILLISECONDS,
            )
        except psycopg.ProgrammingError as error:
            said = f"The URL of the {self._address.name} is not understood: {error}."
            raise InvalidStoreURL(said) from error
        except psycopg.OperationalError as error:
            raise self._refused(error) from error
        return connection

    def _refused(self, error: psycopg.OperationalError) -> FairlaneError:
        """libpq tells only in words why no connection was made."""
        words = str(error)
        for state, sign in _SIGNS.items():
            if sign in words:
                return reported(state, words.rpartition("FATAL:")[2].strip(), self._address.name)
        return translated(error, self._address.name)

    def close(self) -> None:
        self._pool.close()


def translated(error: psycopg.Error, store: str) -> FairlaneError:
    """What psycopg raised, as the error that users read."""
    if error.sqlstate is not None:
        return reported(error.sqlstate, str(error), store)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return unreachable(error, store)
    return StoreError(f"A value cannot be stored: {error}.")


_SIGNS = {
    "28P01": "authentication failed",
    "28000": "no pg_hba.conf entry",
    "3D000": "does not exist",
    "42501": "permission denied",
}


def _close(connection: Connection) -> None:
    connection.close()
