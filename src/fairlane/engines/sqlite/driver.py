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
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fairlane.core.errors import (
    AccessDenied,
    NotAFairlaneStore,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from fairlane.core.flow import Mode, Op, perform, persist, persist_async
from fairlane.core.store import Durability
from fairlane.engines.sqlite.lock import FileLock
from fairlane.engines.sqlite.threads import Inbox, Job, LazyThread
from fairlane.engines.sqlite.wakeup import SqliteWakeup
from fairlane.engines.waiters import Waiters

T = TypeVar("T")

APPLICATION_ID = 0x46_61_69_72  # "Fair", in the file's header

_CACHE_KIB = 8 * 1024
_BUSY_MILLISECONDS = 1_000
# A task's pages are written three times in quick succession: a longer WAL (16 MB) brings most of
# them home only once. Checkpoints run inside commits, and so under the lock.
_CHECKPOINT_PAGES = 4_000
_JOBS_PER_TRANSACTION = 100

WAL_RESET_FIXED = (3, 51, 3)


class Execute(NamedTuple):
    """One statement; the reply is a cursor over its rows."""

    sql: str
    parameters: Sequence[Any] = ()


class ExecuteMany(NamedTuple):
    """One statement for many rows; the reply is a cursor whose rowcount is the sum."""

    sql: str
    rows: Iterable[Sequence[Any]]


class Wake:
    """A call that hints, once the transaction is durable, that there is work."""


WAKE = Wake()


class SqliteDriver:
    """Performs operations on one SQLite file, or on memory when `path` is None."""

    def __init__(
        self,
        path: Path | None,
        *,
        verify: Callable[[], Op[None]],
        rolled_back: Callable[[], None],
        synchronous: str = "FULL",
        patience: float = 10.0,
    ) -> None:
        self._path = path
        self._verify = verify
        self._rolled_back = rolled_back
        self._synchronous = synchronous
        self._patience = patience
        self._waiters = Waiters()
        self._writer = LazyThread("fairlane-sqlite-writer", self._serve_writer)
        self._reader = LazyThread("fairlane-sqlite-reader", self._serve_reader) if path else None
        self._verified = False
        # Whoever has the turn may use the connection that writes.
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._lock = FileLock(None if path is None else path.with_name(path.name + ".lock"))

    # -- the two colours -----------------------------------------------------------------------

    async def run(self, op: Op[T]) -> T:
        return await persist_async(lambda: self._once(op), self._patience)

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._once_sync(op), self._patience)

    async def _once(self, op: Op[T]) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        job = Job(op, partial(_answer_threadsafe, loop, answer))
        timer = loop.call_later(self._patience, self._give_up, job)
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
            return answer.result(self._patience)
        except TimeoutError:
            self._give_up(job)
            return answer.result()

    def _perform_here(self, job: Job) -> bool:
        """Where nobody else writes, ordinary code needs no thread to do it for it."""
        if not self._writer.idle or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._connection is None or not self._lock.acquire(wait=False):
                return False
            try:
                told = self._in_turn([job])
            finally:
                self._lock.release()
        finally:
            self._turn.release()
        for tell in told:
            tell()
        return True

    def _thread_for(self, op: Op[T]) -> LazyThread:
        return self._writer if self._reader is None or op.mode is not Mode.READ else self._reader

    def _give_up(self, job: Job) -> None:
        if job.take():
            job.tell(None, self._locked())

    def _locked(self) -> StoreBusy:
        return StoreBusy(
            f"Another process has held the lock of {self._name} for {self._patience:g} s: "
            "wait for it, or find it with `fuser`."
        )

    @property
    def _name(self) -> str:
        return "the in-memory store" if self._path is None else str(self._path)

    # -- the writing thread --------------------------------------------------------------------

    def _serve_writer(self, jobs: Inbox) -> None:
        while batch := jobs.take(_JOBS_PER_TRANSACTION):
            with self._turn:
                try:
                    if self._connection is None:
                        self._leave_foreign_files_alone()
                    self._lock.acquire(wait=True)
                except BaseException as error:  # noqa: BLE001 (the thread must outlive any job)
                    told = self._failed([job for job in batch if job.take()], error)
                else:
                    told = self._in_turn(batch)
                    self._lock.release()
            for tell in told:
                tell()

    def _in_turn(self, batch: list[Job]) -> list[Callable[[], None]]:
        """Perform jobs in one transaction, as the one whose turn it is, under the file's lock.

        Answers how to tell each job what became of it.
        """
        # Only now: while we waited for the lock, callers may have lost their patience.
        batch = [job for job in batch if job.take()]
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._write(self._connection, batch)
        except BaseException as error:  # noqa: BLE001 (the job's caller hears of it)
            if isinstance(error, sqlite3.Error) and self._path is not None:
                self._disconnect()
            return self._failed(batch, error)

    def _failed(self, batch: list[Job], error: BaseException) -> list[Callable[[], None]]:
        translated = self._translated(error)
        return [partial(job.tell, None, translated) for job in batch]

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, connection: sqlite3.Connection, batch: list[Job]) -> list[Callable[[], None]]:
        """One transaction for all these jobs."""
        wake = False

        def call(request: Execute | ExecuteMany | Wake) -> Any:
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
                told: list[Callable[[], None]] = [partial(batch[0].tell, result, None)]
            else:
                told = [self._attempt(connection, job, call) for job in batch]
            connection.execute("COMMIT")
        except BaseException:
            self._rolled_back()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if wake:
            told.append(self._waiters.wake)
        return told

    def _attempt(
        self, connection: sqlite3.Connection, job: Job, call: Callable[[Any], Any]
    ) -> Callable[[], None]:
        """One operation among others: if it fails, only its own changes are undone."""
        connection.execute("SAVEPOINT job")
        try:
            result = self._perform(job.op, call)
        except Exception as error:  # noqa: BLE001 (the job's caller hears of it)
            self._rolled_back()
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return partial(job.tell, None, self._translated(error))
        connection.execute("RELEASE job")
        return partial(job.tell, result, None)

    def _perform(self, op: Op[T], call: Callable[[Any], Any]) -> T:
        if op.mode is Mode.SCHEMA:
            self._verified = False
        elif not self._verified:
            perform(self._verify().flow(), call)
            self._verified = True
        return perform(op.flow(), call)

    # -- the reading thread --------------------------------------------------------------------

    def _serve_reader(self, jobs: Inbox) -> None:
        connection: sqlite3.Connection | None = None
        while batch := jobs.take(1):
            job = batch[0]
            if not job.take():
                continue
            try:
                if connection is None:
                    connection = self._connect()
                job.tell(self._read(connection, job.op), None)
            except BaseException as error:  # noqa: BLE001 (the thread must outlive any job)
                job.tell(None, self._translated(error))
        if connection is not None:
            connection.close()

    def _read(self, connection: sqlite3.Connection, op: Op[T]) -> T:
        connection.execute("BEGIN")
        try:
            return self._perform(op, lambda call: connection.execute(*call))
        finally:
            connection.execute("ROLLBACK")

    # -- connections ---------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None and not self._path.exists():
            # Made with the right mode from the start: tasks may hold secrets.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            isolation_level=None,
            cached_statements=256,
            check_same_thread=False,
        )
        try:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
            self._check_owner(connection)  # of a file that appeared just now
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _leave_foreign_files_alone(self) -> None:
        """Look before anything is made beside the file, be it only a lock."""
        if self._path is not None and self._path.exists():
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                self._check_owner(connection)

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and (application or tables):
            raise NotAFairlaneStore(
                f"{self._name} is a database of another application: nothing was changed. "
                "Use another file."
            )

    def _translated(self, error: BaseException) -> BaseException:
        """The error as users read it."""
        if isinstance(error, OSError):
            return AccessDenied(f"{self._name} cannot be opened: {error.strerror}.")
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}:
            return StoreBusy(f"{self._name} is locked by another program: try again later.")
        if code == sqlite3.SQLITE_READONLY:
            return StoreReadOnly(f"{self._name} is read-only: make file and folder writable.")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(f"The disk under {self._name} is full: free some space.")
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            return NotAFairlaneStore(
                f"{self._name} is not a readable SQLite database: nothing was changed."
            )
        if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
            return AccessDenied(f"{self._name} cannot be opened: check the path and its rights.")
        if code == sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"The disk under {self._name} does not answer: {error}.")
        if "no such table" in str(error):
            return SchemaMissing()
        return StoreError(f"SQLite refused an operation on {self._name}: {error}.")

    # -- the rest ------------------------------------------------------------------------------

    async def listen(self) -> SqliteWakeup:
        return SqliteWakeup(self._waiters, None if self._path is None else _FileWatch(self._path))

    async def durability(self) -> Durability:
        warnings = []
        if self._path is None:
            warnings.append("The store lives in memory: it ends with the process.")
        elif self._synchronous != "FULL":
            warnings.append("synchronous is not FULL: a power cut can undo the last commits.")
        if sqlite3.sqlite_version_info < WAL_RESET_FIXED:
            # Harmless as long as every writer is Fairlane, which takes its lock first.
            warnings.append(
                f"SQLite {sqlite3.sqlite_version} can corrupt the file when another program "
                "writes to it at the same time: let only Fairlane write to it."
            )
        return Durability(
            engine="sqlite",
            settings={
                "version": sqlite3.sqlite_version,
                "journal_mode": "memory" if self._path is None else "wal",
                "synchronous": self._synchronous,
            },
            warnings=tuple(warnings),
        )

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


class _FileWatch:
    """A connection that does nothing but look whether others have committed."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._last = 0

    def version(self) -> int:
        # Busy recovering: whoever waits will look again in a moment.
        with suppress(sqlite3.OperationalError):
            (self._last,) = self._connection.execute("PRAGMA data_version").fetchone()
        return self._last

    def close(self) -> None:
        self._connection.close()
