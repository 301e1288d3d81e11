"""psycopg, for callers without an event loop. The same rules as in driver_async.py, for threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from fairlane.core.errors import FairlaneError, InvalidStoreURL, StoreError
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import ROLLBACK, Query, Script
from fairlane.engines.postgres.errors import error_of, is_fatal, unreachable
from fairlane.engines.postgres.pool import Pool
from fairlane.engines.postgres.session import NAME, SESSION

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[Any]"

_CONNECT_SECONDS = 5
_SILENCE_MILLISECONDS = 40_000


class SyncSide:
    """Connections for threads, by psycopg."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self.pooled = bool(address.pooled)
        """Whether a pooler is in between; known once a connection is open."""
        self._pool = Pool(self._open, _close, size)
        self._name = NAME

    def name(self, name: str) -> None:
        """Set what sessions are called. Those that are open and idle are replaced."""
        self._name = name
        self._pool.clear()

    def use(self, conversation: Callable[[Connection], T]) -> T:
        """Call `conversation` with a connection."""
        connection = self._pool.take()
        keep = False
        try:
            result = conversation(connection)
            keep = True
        except Exception as error:
            keep = self._recover(connection, error)
            if is_fatal(error):
                self._pool.clear()
            raise
        finally:
            (self._pool.give if keep else self._pool.drop)(connection)
        return result

    def call(self, connection: Connection, request: Query | Script) -> Any:
        """Perform one call of a flow."""
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

    def _recover(self, connection: Connection, error: Exception) -> bool:
        """Make a connection usable again after an error. Return whether it is."""
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
        # With pgbouncer=false the session is ours alone, even behind a pooler.
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
                application_name=self._name,
            )
        except psycopg.ProgrammingError as error:
            raise InvalidStoreURL(
                f"The URL of the {self._address.name} cannot be parsed: {error}."
            ) from error
        except psycopg.OperationalError as error:
            raise self._refusal(error) from error
        return connection

    def _refusal(self, error: psycopg.OperationalError) -> FairlaneError:
        """Return the error for a refused connection. libpq gives the reason as text only."""
        words = str(error)
        for state, sign in _SIGNS.items():
            if sign in words:
                return error_of(state, words.rpartition("FATAL:")[2].strip(), self._address.name)
        return translated(error, self._address.name)

    def close(self) -> None:
        self._pool.close()


def translated(error: psycopg.Error, store: str) -> FairlaneError:
    """Return an error of psycopg as the error that users see."""
    if error.sqlstate is not None:
        return error_of(error.sqlstate, str(error), store)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return unreachable(error, store)
    return StoreError(f"The {store} cannot store a value: {error}.")


_SIGNS = {
    "28P01": "authentication failed",
    "28000": "no pg_hba.conf entry",
    "3D000": "does not exist",
    "42501": "permission denied",
}


def _close(connection: Connection) -> None:
    connection.close()
