"""Operations inside a transaction that someone else began and will end."""

from __future__ import annotations

import inspect
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fairlane.core.errors import InvalidConnection
from fairlane.core.flow import Mode, Op, perform
from fairlane.engines.sqlite.calls import Call, Execute, ExecuteMany
from fairlane.engines.sqlite.driver_database import (
    Database,
    OwnConnection,
    risk_of_other_writers,
)

logger = logging.getLogger("fairlane.store")

T = TypeVar("T")


def perform_within(
    connection: sqlite3.Connection, op: Op[T], verify: Callable[[], Op[None]]
) -> tuple[T, bool]:
    """Perform an operation in the transaction that is open; if it fails, only its own changes are
    undone. Answers its result, and whether it has hinted at work.
    """
    wake = False

    def call(request: Call) -> Any:
        nonlocal wake
        if not isinstance(request, Execute | ExecuteMany):
            wake = True
            return None
        cursor = connection.cursor()
        cursor.row_factory = None  # in what shape the caller likes rows is none of our business
        if isinstance(request, Execute):
            return cursor.execute(request.sql, request.parameters)
        return cursor.executemany(request.sql, request.rows)

    connection.execute("SAVEPOINT fairlane")
    text_factory, connection.text_factory = connection.text_factory, str
    try:
        if op.mode is not Mode.SCHEMA:
            perform(verify().flow(), call)
        result = perform(op.flow(), call)
    except BaseException:
        if connection.in_transaction:  # a full disk, say, has undone all of it already
            connection.execute("ROLLBACK TO fairlane")
            connection.execute("RELEASE fairlane")
        raise
    else:
        connection.execute("RELEASE fairlane")
    finally:
        connection.text_factory = text_factory
    return result, wake


class SqliteJoined:
    """A caller's own connection. A write begins a transaction where there is none; the caller ends
    it. `run` blocks like `run_sync`: the connection does."""

    def __init__(
        self,
        database: Database,
        given: Any,
        verify: Callable[[], Op[None]],
        forget: Callable[[], None],
        shortest_lease: Callable[[], Op[float | None]],
        memory: sqlite3.Connection | None,
    ) -> None:
        self._database = database
        self._given = given
        self._verify = verify
        self._forget = forget
        self._shortest_lease = shortest_lease
        self._memory = memory
        self._connection()

    async def run(self, op: Op[T]) -> T:
        return self.run_sync(op)

    def run_sync(self, op: Op[T]) -> T:
        connection = self._connection()
        begins = not connection.in_transaction
        # Lanes that were opened in this transaction may be gone again after it.
        self._forget()
        try:
            if begins:
                connection.execute("BEGIN" if op.mode is Mode.READ else "BEGIN IMMEDIATE")
            result, _ = perform_within(connection, op, self._verify)
            if op.mode is not Mode.READ:
                self._warn(connection)
            if begins and op.mode is Mode.READ:
                connection.execute("COMMIT")
        except BaseException as error:
            if begins and connection.in_transaction:
                connection.execute("ROLLBACK")
            translated = self._database.translated(error)
            if translated is error:
                raise
            raise translated from error
        finally:
            self._forget()
        return result

    def _connection(self) -> sqlite3.Connection:
        """Return the driver's connection inside what was given. A session may have another one by
        now."""
        memory = self._memory
        if self._database.path is None:
            if memory is None or memory is not self._given or not memory.in_transaction:
                raise InvalidConnection(
                    "A store in memory has no file that another connection could lead to: use "
                    "the connection of transaction(), or a store in a file."
                )
            return memory
        connection = _driver_connection(self._given)
        try:
            cursor = connection.cursor()
            cursor.row_factory = None
            files = [row[2] for row in cursor.execute("PRAGMA database_list") if row[0] == 0]
        except sqlite3.Error as error:
            raise InvalidConnection(f"This connection cannot be used: {error}.") from None
        if not (files and files[0] and _same(files[0], self._database.path)):
            raise InvalidConnection(
                f"This connection leads to another database than {self._database.path}: connect to "
                "that file, or open the store that belongs to yours."
            )
        return connection

    def _warn(self, connection: sqlite3.Connection) -> None:
        """Log, once for a file, that this connection writes beside workers without the lock."""
        if isinstance(connection, OwnConnection) or self._database.warned:
            return
        risk = risk_of_other_writers()
        if risk is None:
            return
        # A worker writes all the time. Without one, the caller may be the only one who does.
        lease, _ = perform_within(connection, self._shortest_lease(), self._verify)
        if lease is not None:
            self._database.warned = True
            logger.warning(
                "A task was submitted on a connection of the application's own to %s, which "
                "workers write to. %s",
                self._database.name,
                risk,
            )


def _driver_connection(given: Any) -> sqlite3.Connection:
    """Out of an SQLAlchemy session or connection, by the names these have for what they wrap."""
    found = given
    for _ in range(4):  # a session, its connection, that of its pool, the driver's
        if isinstance(found, sqlite3.Connection):
            return found
        inner = getattr(found, "driver_connection", None) or getattr(found, "connection", None)
        if inspect.iscoroutinefunction(inner):
            break
        found = inner() if inspect.ismethod(inner) else inner
    raise InvalidConnection(
        "Give a sqlite3.Connection, or an SQLAlchemy Session or Connection on one (not an "
        f"asynchronous one). Got {type(given).__name__}."
    )


def _same(file: str | bytes, path: Path) -> bool:
    try:
        return Path(os.fsdecode(file)).samefile(path)
    except OSError:
        return False
