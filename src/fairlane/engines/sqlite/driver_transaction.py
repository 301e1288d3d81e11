"""A transaction that an application's writes and operations share."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TypeVar

from fairlane.backoff import persist, persist_async
from fairlane.core import limits
from fairlane.core.errors import StoreError, TransactionTooLong
from fairlane.core.flow import Op
from fairlane.engines.sqlite.driver_caller_transactions import perform_within
from fairlane.engines.sqlite.driver_database import Database
from fairlane.engines.sqlite.lock import FileLock
from fairlane.engines.sqlite.threads import Hand

T = TypeVar("T")

Ground = Callable[[], AbstractContextManager[tuple[sqlite3.Connection, FileLock]]]
"""A connection that nobody else uses, and the lock that lets it alone write. The lock must be held
when the context is left."""

_LEASE_SHARE = 1 / 3
"""For which share of a lease a transaction may keep everyone else from writing, and so workers from
sending heartbeats."""
_HEED_SECONDS = 0.02
"""A statement that was stopped has this long to report it, before the connection is used again:
after that its error may be taken for another, or for none."""
_PROGRESS = 10_000
"""A statement looks after this many instructions whether it has to stop."""

_OVER = "The transaction is over: begin another one."


class SqliteTransaction:
    """A transaction whose blocking calls run on a thread of its own.

    The thread releases everything as its last call, even if the caller is cancelled meanwhile.
    """

    def __init__(
        self,
        database: Database,
        ground: Ground,
        verify: Callable[[], Op[None]],
        shortest_lease: Callable[[], Op[float | None]],
        committed: Callable[[], None],
    ) -> None:
        self._database = database
        self._ground = ground
        self._verify = verify
        self._shortest_lease = shortest_lease
        self._committed = committed
        self._hand = Hand("fairlane-sqlite-transaction")
        self._stack = ExitStack()
        self._open: sqlite3.Connection | None = None
        self._lock = FileLock(None)
        self._wake = False
        self._limit = math.inf
        self._timer: threading.Timer | None = None
        self._expired = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection that the transaction is on."""
        if self._open is None:
            raise RuntimeError(_OVER)
        return self._open

    async def run(self, op: Op[T]) -> T:
        return await self._do(partial(self._perform, op))

    async def begin(self, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await persist_async(lambda: self._do(self._begin), patience)
        except TimeoutError:
            raise self._database.locked(patience) from None

    def begin_sync(self, patience: float) -> None:
        """Blocking twin of `begin`."""
        until = time.monotonic() + patience

        def begin() -> None:
            self._do_sync(self._begin, max(0.0, until - time.monotonic()))

        try:
            persist(begin, patience)
        except TimeoutError:
            raise self._database.locked(patience) from None

    async def commit(self) -> None:
        await self._do(self._commit)

    def commit_sync(self) -> None:
        """Blocking twin of `commit`."""
        self._do_sync(self._commit)

    def too_long(self) -> TransactionTooLong | None:
        """Return the error of a transaction that was ended because it took too long."""
        if not self._expired:
            return None
        return TransactionTooLong(
            f"A transaction held the lock of {self._database.name} for {round(self._limit, 2):g} "
            "s, a third of a worker's lease, while nobody else could write or send a heartbeat: it "
            "was rolled back. Do what takes long before the transaction, or give the workers a "
            "longer lease."
        )

    def _expire(self) -> None:
        """Stop what runs, and roll back: what the caller does from now on must fail."""
        if self._open is not None:
            self._expired = True
            self._hand.call(self._end)

    async def release(self) -> None:
        """Give everything back; undoes what was not committed."""
        released = self._let_go()
        if released is not None:
            await asyncio.shield(asyncio.wrap_future(released))

    def release_sync(self) -> None:
        """Blocking twin of `release`."""
        released = self._let_go()
        if released is not None:
            released.result()

    def _let_go(self) -> Future[None] | None:
        """Return when everything is given back. None: the thread may still wait for the lock, and
        will give it back by itself."""
        begun = self._open is not None
        released = self._hand.call(self._release)
        self._hand.stop()
        return released if begun else None

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.wrap_future(self._hand.call(work))
        except (sqlite3.Error, OSError) as error:
            raise self._database.translated(error) from error

    def _do_sync(self, work: Callable[[], T], seconds: float | None = None) -> T:
        try:
            return self._hand.call(work).result(seconds)
        except TimeoutError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise self._database.translated(error) from error

    # -- in its thread -------------------------------------------------------------------------

    def _begin(self) -> None:
        with ExitStack() as stack:
            connection, lock = stack.enter_context(self._ground())
            connection.execute("BEGIN IMMEDIATE")
            if self._database.path is not None:  # who waits for memory is in this process
                self._limit = self._time_limit(connection)
                # Not `interrupt`: while the caller reads, that would refuse the ROLLBACK, too.
                connection.set_progress_handler(lambda: self._expired, _PROGRESS)
            self._stack = stack.pop_all()
        self._open, self._lock = connection, lock
        if self._limit < math.inf:
            # A thread: the caller may block the event loop.
            self._timer = threading.Timer(self._limit, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _time_limit(self, connection: sqlite3.Connection) -> float:
        """Return for how many seconds the transaction may last. A worker that wants to register
        meanwhile waits for it."""
        lease, _ = perform_within(connection, self._shortest_lease(), self._verify)
        return _LEASE_SHARE * (limits.LEASE_SECONDS if lease is None else lease)

    def _perform(self, op: Op[T]) -> T:
        if not self.connection.in_transaction:
            raise RuntimeError(_OVER)
        result, wake = perform_within(self.connection, op, self._verify)
        self._wake = self._wake or wake
        return result

    def _commit(self) -> None:
        if self._expired:
            raise RuntimeError(_OVER)
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
            if not self._database.files.intact():
                raise self._database.replaced()
        if self._wake:
            self._committed()

    def _end(self) -> None:
        """Roll back and let others write, while the caller may be inside a call.

        So the connection stays open, but refuses to write: a thread that comes back from a call of
        a connection that was closed meanwhile finds no memory, or crashes.
        """
        connection, self._open = self._open, None
        if connection is not None:
            time.sleep(_HEED_SECONDS)
            connection.execute("PRAGMA query_only = ON")
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._lock.release()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        connection, self._open = self._open, None
        with self._stack:
            if connection is None:  # it was ended, or has not begun
                self._lock.acquire(wait=True)
            elif connection.in_transaction:
                connection.execute("ROLLBACK")


@asynccontextmanager
async def transacting(
    transaction: SqliteTransaction, patience: float
) -> AsyncIterator[SqliteTransaction]:
    """Begin it, and end it one way or the other."""
    try:
        with _telling_too_long(transaction):
            await transaction.begin(patience)
            yield transaction
            await transaction.commit()
    finally:
        await transaction.release()


@contextmanager
def transacting_sync(
    transaction: SqliteTransaction, patience: float
) -> Iterator[sqlite3.Connection]:
    """Blocking twin of `transacting`."""
    try:
        with _telling_too_long(transaction):
            transaction.begin_sync(patience)
            yield transaction.connection
            transaction.commit_sync()
    finally:
        transaction.release_sync()


@contextmanager
def _telling_too_long(transaction: SqliteTransaction) -> Iterator[None]:
    """Raise TransactionTooLong in place of the errors that follow from it."""
    try:
        yield
    except (sqlite3.Error, RuntimeError, StoreError, MemoryError, SystemError) as error:
        # A thread that computes shares the connection: what its call raises may be any of these.
        too_long = transaction.too_long()
        if too_long is None:
            raise
        raise too_long from error
