"""The database itself: how to open it, whose it is, what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from weakref import WeakSet

from fairlane.core.backend import Durability
from fairlane.core.errors import (
    AccessDenied,
    NotAFairlaneStore,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreReplaced,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.engines.sqlite.driver_files import StoreFiles
from fairlane.engines.sqlite.lock import FileLock
from fairlane.engines.sqlite.notices import Notices

APPLICATION_ID = 0x46_61_69_72  # "Fair", in the file's header

_CACHE_KIB = 8 * 1024
_BUSY_MILLISECONDS = 250  # for programs that do not take our lock; callers try again
# A task's pages are written three times in quick succession: a longer WAL (16 MB) brings most of
# them home only once. Checkpoints run inside commits, and so under the lock.
_CHECKPOINT_PAGES = 4_000

# One statement, because another process may make the store between two.
_OWNER = """
SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id
"""

WAL_RESET_FIXED = (3, 51, 3)


class OwnConnection(sqlite3.Connection):
    """A connection of Fairlane's own. It writes under the lock."""


def risk_of_other_writers() -> str | None:
    """Return why nothing but Fairlane may write to the file; None if everything may.

    Before the fix of its WAL-reset bug, SQLite can corrupt a file while one connection commits and
    another one checkpoints. Fairlane's lock keeps them apart, and others do not take it.
    """
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return None
    fixed = ".".join(map(str, WAL_RESET_FIXED))
    return (
        f"SQLite {sqlite3.sqlite_version} can corrupt the file if anything but Fairlane writes to "
        "it at the same time: write within app.transaction() or ctx.transaction(), or let every "
        f"process use SQLite {fixed} or newer."
    )


class Database:
    """One SQLite file, or memory when `path` is None."""

    def __init__(self, path: Path | None, synchronous: str) -> None:
        self.path = path
        self.files = StoreFiles(path)
        self._synchronous = synchronous
        self.warned = False
        """Whether somebody was told that others must not write to it."""
        self._opened = False
        self._watches: WeakSet[FileWatch] = WeakSet()

    @property
    def name(self) -> str:
        """As messages call it."""
        return "the in-memory store" if self.path is None else str(self.path)

    @property
    def lock_path(self) -> Path | None:
        """The lock file; None for memory."""
        return None if self.path is None else self.path.with_name(self.path.name + ".lock")

    def lock(self) -> FileLock:
        """Return a new lock on the lock file."""
        return FileLock(self.lock_path)

    def open(self, *, make: bool) -> sqlite3.Connection:
        """Return a connection to the files that are there, and remember which they are.

        A file that was there before and is missing now is not made again, unless `make` is set.
        """
        if self.path is not None and not self.path.exists():
            if self._opened and not make:
                raise SchemaMissing(
                    f"{self.name} was deleted: put it back, or run `fairlane migrate` to begin "
                    "with an empty store."
                )
            # Made with the right mode from the start: tasks may hold secrets.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        before = self.files.database()
        connection = self.connect()
        if self.files.database() != before or not self.files.intact():
            connection.close()
            raise self.replaced()
        if not self.files.known:
            self.files.note()
        self._opened = True
        return connection

    def give_up(self, connections: list[sqlite3.Connection]) -> None:
        """Close all connections to files that are no longer at their paths."""
        for watch in self._watches:
            watch.close()
        self.files.give_up(connections)

    def replaced(self) -> StoreReplaced:
        """Return the error of a caller whose files were replaced."""
        return StoreReplaced(
            f"{self.name}, or a file beside it, was replaced or deleted while it was open. "
            "It is opened again: repeat the call."
        )

    def check_content(self, connection: sqlite3.Connection) -> None:
        """Raise StoreUnusable if another file was copied over the database. Under the lock."""
        if self.files.overwritten(connection):
            raise StoreUnusable(
                f"Another file was copied over {self.name} while it was open. Stop every process "
                "that uses it, delete the files beside it that end in -wal and -shm, copy the file "
                "again, and start the processes."
            )

    def connect(self) -> sqlite3.Connection:
        """Return a connection with the settings that the store wants."""
        connection = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            isolation_level=None,
            cached_statements=256,
            check_same_thread=False,
            factory=OwnConnection,
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

    def leave_foreign_files_alone(self) -> None:
        """Look before anything is made beside the file, be it only a lock."""
        if self.path is not None and self.path.exists():
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                self._check_owner(connection)

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        application, tables = connection.execute(_OWNER).fetchone()
        if application != APPLICATION_ID and (application or tables):
            raise NotAFairlaneStore(
                f"{self.name} is a database of another application: nothing was changed. "
                "Use another file."
            )

    def watch(self) -> FileWatch | None:
        """Return a watch on other processes' commits; None for memory."""
        if self.path is None:
            return None
        watch = FileWatch(self.path, self.files)
        self._watches.add(watch)
        return watch

    def locked(self, seconds: float) -> StoreBusy:
        """Return the error of a caller that did not get the lock in time."""
        return StoreBusy(
            f"Another process, or a transaction of this one, has held the lock of {self.name} for "
            f"{seconds:g} s: wait for it, or find the process with `fuser`."
        )

    def translated(self, error: BaseException) -> BaseException:
        """Return the error as users read it."""
        if isinstance(error, OSError):
            return AccessDenied(f"{self.name} cannot be opened: {error.strerror}.")
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}:
            return StoreBusy(f"{self.name} is locked by another program: try again later.")
        if code == sqlite3.SQLITE_READONLY:
            return StoreReadOnly(f"{self.name} is read-only: make file and folder writable.")
        if code == sqlite3.SQLITE_FULL:
            return StoreFull(f"The disk under {self.name} is full: free some space.")
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            return NotAFairlaneStore(
                f"{self.name} is not a readable SQLite database: nothing was changed."
            )
        if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
            return AccessDenied(f"{self.name} cannot be opened: check the path and its rights.")
        if code == sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"The disk under {self.name} does not answer: {error}.")
        if "no such table" in str(error):
            return SchemaMissing()
        return StoreError(f"SQLite refused an operation on {self.name}: {error}.")

    def durability(self) -> Durability:
        """Return what the settings promise."""
        warnings = []
        if self.path is None:
            warnings.append("The store lives in memory: it ends with the process.")
        elif self._synchronous != "FULL":
            warnings.append("synchronous is not FULL: a power cut can undo the last commits.")
        risk = risk_of_other_writers()
        if risk is not None and self.path is not None:
            warnings.append(risk)
        return Durability(
            engine="sqlite",
            settings={
                "version": sqlite3.sqlite_version,
                "journal_mode": "memory" if self.path is None else "wal",
                "synchronous": self._synchronous,
            },
            warnings=tuple(warnings),
        )


class FileWatch:
    """A connection that does nothing but look whether others have committed."""

    def __init__(self, path: Path, files: StoreFiles) -> None:
        self._path = path
        self._files = files
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._last = 0
        self.opened = 0
        """How often the file was opened: other files need other notices."""

    def version(self) -> int:
        # SQLite recovers the file at this moment; the next look will succeed.
        with self._guard, suppress(sqlite3.Error):
            if self._connection is None:
                # Files that are being replaced are opened by the next write, or read, first.
                if self._files.lost or not self._files.intact() or not self._path.exists():
                    return self._last
                self._connection = sqlite3.connect(
                    self._path, isolation_level=None, check_same_thread=False
                )
                self.opened += 1
            (found,) = self._connection.execute("PRAGMA data_version").fetchone()
            self._last = self.opened << 32 | found
        return self._last

    def notices(self) -> Notices | None:
        # Every commit is written to the log, which stays where it is while we are connected.
        self.version()
        return Notices.of(self._path.with_name(self._path.name + "-wal"))

    def close(self) -> None:
        """Close the file; the next look opens the one that is there then."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
