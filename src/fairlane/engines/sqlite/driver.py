"""SQLite as a driver: one connection writes, another reads, and nothing else in the process does.

Each has a thread, so that no event loop ever waits for a disk. Ordinary code that finds nobody else
writing does so itself, which saves it two switches between threads.

Every write, in every process, first takes a blocking lock on `<file>.lock`: fair, without polling,
and so that no two processes ever write or checkpoint at the same moment (SQLite before 3.51.3 can
corrupt a WAL then). Whatever has queued up while the last transaction was being made durable goes
into the next one, each operation under its own savepoint: one fsync serves them all.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    closing,
    contextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fairlane.backoff import persist, persist_async
from fairlane.core.backend import Durability
from fairlane.core.flow import Flow, Mode, Op, perform
from fairlane.engines.sqlite.calls import Call, Execute, ExecuteMany
from fairlane.engines.sqlite.driver_caller_transactions import SqliteJoined
from fairlane.engines.sqlite.driver_database import Database
from fairlane.engines.sqlite.driver_transaction import (
    SqliteTransaction,
    transacting,
    transacting_sync,
)
from fairlane.engines.sqlite.lock import FileLock
from fairlane.engines.sqlite.threads import Inbox, Job, LazyThread
from fairlane.engines.sqlite.wakeup import Commits, SqliteWakeup
from fairlane.engines.waiters import Waiters

__all__ = ["Execute", "SqliteDriver"]

T = TypeVar("T")

_JOBS_PER_TRANSACTION = 100
_MOMENT = 0.5
"""A caller without patience waits for so many seconds: another thread may have to open the file,
and another process may be writing to it."""

logger = logging.getLogger("fairlane.store")


class SqliteDriver:
    """Performs operations on one SQLite file, or on memory when `path` is None."""

    remote = False

    def __init__(
        self,
        path: Path | None,
        *,
        verify: Callable[[], Op[None]],
        rolled_back: Callable[[], None],
        replaced: Callable[[], None],
        shortest_lease: Callable[[], Op[float | None]],
        synchronous: str = "FULL",
        patience: float = 10.0,
    ) -> None:
        self._database = Database(path, synchronous)
        self._verify = verify
        self._rolled_back = rolled_back
        self._replaced = replaced
        self._shortest_lease = shortest_lease
        self._patience = patience
        self._wait = max(patience, _MOMENT)
        self._waiters = Waiters()
        self._commits = Commits()
        self._writer = LazyThread("fairlane-sqlite-writer", self._serve_writer)
        self._reader = LazyThread("fairlane-sqlite-reader", self._serve_reader) if path else None
        self._verified = False
        # The holder of this lock may use the connection that writes.
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        # The holder of this lock may use the connection that reads.
        self._reading = threading.Lock()
        self._read_connection: sqlite3.Connection | None = None
        self._lock = self._database.lock()

    @property
    def lock_file(self) -> str | None:
        path = self._database.lock_path
        return None if path is None else str(path.resolve())

    # -- the two colours -----------------------------------------------------------------------

    async def run(self, op: Op[T]) -> T:
        return await persist_async(lambda: self._once(op), op.patience(self._patience), op.pause)

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._once_sync(op), op.patience(self._patience), op.pause)

    async def _once(self, op: Op[T]) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        job = Job(op, partial(_answer_threadsafe, loop, answer))
        timer = loop.call_later(op.patience(self._wait), self._give_up, job)
        self._thread_for(op).put(job)
        try:
            return await answer
        finally:
            timer.cancel()
            job.take()  # a caller that was cancelled needs it no more

    def _once_sync(self, op: Op[T]) -> T:
        answer: Future[T] = Future()
        job = Job(op, partial(_answer, answer))
        if op.mode is Mode.READ or not self._perform_here(job):
            self._thread_for(op).put(job)
        try:
            return answer.result(op.patience(self._wait))
        except TimeoutError:
            self._give_up(job)
            return answer.result()

    def _perform_here(self, job: Job) -> bool:
        """Perform a job on the calling thread if the writer is idle. Returns whether it did."""
        if not self._writer.idle or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._connection is None or not self._lock.acquire(wait=False):
                return False
            try:
                reports = self._in_turn([job])
            finally:
                self._lock.release()
        finally:
            self._turn.release()
        for report in reports:
            report()
        return True

    def _thread_for(self, op: Op[T]) -> LazyThread:
        return self._writer if self._reader is None or op.mode is not Mode.READ else self._reader

    def _give_up(self, job: Job) -> None:
        if job.take():
            job.report(None, self._database.locked(job.op.patience(self._wait)))

    # -- the writing thread --------------------------------------------------------------------

    def _serve_writer(self, jobs: Inbox) -> None:
        while batch := jobs.take(_JOBS_PER_TRANSACTION):
            with self._turn:
                try:
                    if self._connection is None:
                        self._database.leave_foreign_files_alone()
                    self._lock.acquire(wait=True)
                except BaseException as error:  # noqa: BLE001 (the thread must outlive any job)
                    reports = self._failed([job for job in batch if job.take()], error)
                else:
                    reports = self._in_turn(batch)
                    self._lock.release()
            for report in reports:
                report()

    def _in_turn(self, batch: list[Job]) -> list[Callable[[], None]]:
        """Perform jobs in one transaction, while holding the turn and the file's lock.

        Returns how to report each result: the caller does so after it has released both.
        """
        # Only now: callers may have given up while we waited for the lock.
        batch = [job for job in batch if job.take()]
        files = self._database.files
        try:
            if not files.trusted():
                self._check_files()
            if self._connection is None:
                make = any(job.op.mode is Mode.SCHEMA for job in batch)
                self._connection = self._database.open(make=make)
                self._database.check_content(self._connection)
            reports = self._write(self._connection, batch)
        except BaseException as error:  # noqa: BLE001 (the job's caller gets it)
            if isinstance(error, sqlite3.Error) and self._database.path is not None:
                self._disconnect()
            reports = self._failed(batch, error)
        # What is in a file without a name is not acknowledged, and its errors mean nothing.
        return reports if files.intact() else self._failed(batch, self._database.replaced())

    def _check_files(self) -> None:
        """Raise if the files are not those that were opened, or what is in them is not.

        Raises StoreReplaced when they are closed, and StoreUnusable. Call this while holding the
        turn and the file's lock.
        """
        if self._database.files.intact():
            if self._connection is not None:
                self._database.check_content(self._connection)
            return
        error = self._database.replaced()
        with self._reading:
            opened = [each for each in (self._connection, self._read_connection) if each]
            self._database.give_up(opened)
            self._connection = self._read_connection = None
        logger.error("%s", error)
        self._verified = False
        self._replaced()
        self._lock.close()
        raise error

    def _failed(self, batch: list[Job], error: BaseException) -> list[Callable[[], None]]:
        translated = self._database.translated(error)
        return [partial(job.report, None, translated) for job in batch]

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._verified = False

    def _write(self, connection: sqlite3.Connection, batch: list[Job]) -> list[Callable[[], None]]:
        """Perform jobs in one transaction. Returns how to report each result."""
        wake = False

        def call(request: Call) -> Any:
            nonlocal wake
            if isinstance(request, Execute):
                return connection.execute(request.sql, request.parameters)
            if isinstance(request, ExecuteMany):
                return connection.executemany(request.sql, request.rows)
            wake = True
            return None

        connection.execute("BEGIN IMMEDIATE")
        try:
            if len(batch) == 1:
                result = self._perform(batch[0].op, call)
                reports: list[Callable[[], None]] = [partial(batch[0].report, result, None)]
            else:
                reports = [self._attempt(connection, job, call) for job in batch]
            with self._commits.one():
                connection.execute("COMMIT")
        except BaseException:
            self._rolled_back()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if wake:
            reports.append(self._waiters.wake)
        return reports

    def _attempt(
        self, connection: sqlite3.Connection, job: Job, call: Callable[[Any], Any]
    ) -> Callable[[], None]:
        """Perform one operation of several. If it fails, only its own changes are rolled back."""
        connection.execute("SAVEPOINT job")
        try:
            result = self._perform(job.op, call)
        except Exception as error:  # noqa: BLE001 (the job's caller gets it)
            self._rolled_back()
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return partial(job.report, None, self._database.translated(error))
        connection.execute("RELEASE job")
        return partial(job.report, result, None)

    def _perform(self, op: Op[T], call: Callable[[Any], Any]) -> T:
        if op.mode is Mode.SCHEMA:
            self._verified = False
        elif not self._verified:
            perform(self._verify().flow(), call)
            self._verified = True
        return perform(op.flow(), call)

    # -- the reading thread --------------------------------------------------------------------

    def _serve_reader(self, jobs: Inbox) -> None:
        while batch := jobs.take(1):
            job = batch[0]
            if not job.take():
                continue
            try:
                job.report(self._read_intact(job.op), None)
            except BaseException as error:  # noqa: BLE001 (the thread must outlive any job)
                job.report(None, self._database.translated(error))
        with self._reading:
            self._stop_reading()

    def _read_intact(self, op: Op[T]) -> T:
        """Read from the files that have the names, before and after."""
        files = self._database.files
        if files.trusted() or files.intact():
            with self._reading:
                try:
                    if self._read_connection is None:
                        make = op.mode is Mode.SCHEMA
                        self._read_connection = self._database.open(make=make)
                    result = self._read(self._read_connection, op)
                except sqlite3.Error:
                    self._stop_reading()
                    raise
            if files.trusted() or files.intact():
                return result
        # Closing them takes the lock, and so the thread that writes.
        self._once_sync(_LOOK)
        raise self._database.replaced()

    def _stop_reading(self) -> None:
        if self._read_connection is not None:
            self._read_connection.close()
            self._read_connection = None

    def _read(self, connection: sqlite3.Connection, op: Op[T]) -> T:
        connection.execute("BEGIN")
        try:
            return self._perform(op, lambda call: connection.execute(*call))
        finally:
            connection.execute("ROLLBACK")

    # -- the rest ------------------------------------------------------------------------------

    def join(self, connection: Any) -> SqliteJoined:
        """Perform operations on a caller's own connection to the store's file.

        That is a `sqlite3.Connection`, or an SQLAlchemy session or connection on one. It does not
        take Fairlane's lock, because nobody could give it back: when the caller commits, only the
        caller knows. The connection of a `transaction` has the lock.
        """
        return SqliteJoined(
            self._database,
            connection,
            self._verify,
            self._rolled_back,
            self._shortest_lease,
            self._connection,
        )

    def transaction(self) -> AbstractAsyncContextManager[SqliteTransaction]:
        """Open a transaction of the store's database. Until it ends, other writers wait.

        It is rolled back after a third of the shortest lease of a worker: TransactionTooLong.
        """
        return transacting(self._new_transaction(), self._wait)

    def transaction_sync(self) -> AbstractContextManager[sqlite3.Connection]:
        return transacting_sync(self._new_transaction(), self._wait)

    def _new_transaction(self) -> SqliteTransaction:
        ground = self._shared if self._database.path is None else self._apart
        return SqliteTransaction(
            self._database, ground, self._verify, self._shortest_lease, self._waiters.wake
        )

    @contextmanager
    def _apart(self) -> Iterator[tuple[sqlite3.Connection, FileLock]]:
        """Return a connection of its own, under the file's lock."""
        if not self._database.files.intact():
            self._once_sync(_LOOK)
        self._database.leave_foreign_files_alone()
        lock = self._database.lock()
        with closing(lock):
            lock.acquire(wait=True)
            try:
                # Closed under the lock: the last connection to leave checkpoints.
                with closing(self._database.open(make=False)) as connection:
                    yield connection, lock
            finally:
                lock.release()

    @contextmanager
    def _shared(self) -> Iterator[tuple[sqlite3.Connection, FileLock]]:
        """Memory has but one connection: a turn of its own on that."""
        with self._turn:
            if self._connection is None:
                self._connection = self._database.open(make=False)
            try:
                yield self._connection, self._lock
            finally:
                self._connection.row_factory = None
                self._connection.text_factory = str

    def serve_worker(self, worker_id: str, lease: float) -> None:
        """Do nothing: transactions go by the leases in the store."""

    async def listen(self) -> SqliteWakeup:
        return SqliteWakeup(self._waiters, self._database.watch(), self._commits)

    async def durability(self) -> Durability:
        return self._database.durability()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        # The reader first: the last connection to leave checkpoints, and that takes the lock.
        if self._reader is not None:
            self._reader.stop()
        self._writer.stop()
        with self._turn:
            if self._connection is not None:
                self._lock.acquire(wait=True)
                self._disconnect()
            self._lock.close()


def _nothing() -> Flow[None]:
    yield from ()


_LOOK: Op[None] = Op("look", Mode.TRANSACTION, _nothing)
"""Does nothing: whoever performs it looks at the files first."""


def _answer(future: Future[T] | asyncio.Future[T], result: T, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _answer_threadsafe(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[T],
    result: T,
    error: BaseException | None,
) -> None:
    # A loop that was closed in the meantime has nobody left who waits.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_answer, future, result, error)
