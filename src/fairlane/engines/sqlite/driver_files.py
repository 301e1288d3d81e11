"""The files of a store: are those at their paths still the ones that were opened?

SQLite does not notice when its file is deleted or replaced: it goes on writing to a file without a
name, and everything it has acknowledged is gone with the last process that has that file open.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from fairlane.core.errors import StoreBusy

logger = logging.getLogger("fairlane.store")

Identity = tuple[int, int]
"""Device and inode."""

TRUST: Final = 0.02
"""Seconds for which a look at the files counts. Whoever gives files up holds the lock for longer,
so that nobody writes to them afterwards."""

_SETTLED_NANOSECONDS: Final = 3_000_000_000
"""The longest step of a file system's clock: a folder changed more recently than this may have
changed again since, under the same time."""

_FINE_NANOSECONDS: Final = 100_000_000
"""The same where times have fractions of a second: such clocks step every 10 ms or more often."""

_NEVER: Final = float("-inf")


class StoreFiles:
    """The database, its log, its index and the lock, as this process has found them.

    Without a path (a store in memory) there is nothing that could be replaced.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lost = False
        """Whether the files were given up, and none have been opened since."""
        self._known: tuple[Identity | None, ...] | None = None
        self._looked_at = _NEVER
        self._folder = ""
        self._settled: tuple[int, int, int] | None = None
        self._stamp: tuple[int, int] | None = None
        self._header: tuple[int, int] | None = None
        if path is not None:
            real = path.resolve()  # SQLite puts its files beside the real one
            self._beside = tuple(real.with_name(real.name + end) for end in ("-wal", "-shm"))
            self._all = (path, *self._beside, path.with_name(path.name + ".lock"))
            if not path.is_symlink():  # else the folder of the link does not tell
                self._folder = str(path.absolute().parent)

    @property
    def known(self) -> bool:
        """Whether the files were opened, and not given up since."""
        return self._known is not None

    def database(self) -> Identity | None:
        """Return which file is at the path of the database now. None: there is none."""
        return None if self._path is None else _identity(self._path)

    def note(self) -> None:
        """Remember the files: they were opened just now."""
        if self._path is not None:
            self._settled = self._stamp = self._header = None
            self._known = self._look()
            self.lost = False

    def intact(self) -> bool:
        """Return whether the files are still the ones that were opened.

        Costs one look at the folder: deleting or replacing a file in it changes its time.
        """
        if self._known is None:
            return True
        now = time.monotonic()
        folder = None
        if self._folder:
            with suppress(OSError):
                found = os.stat(self._folder)  # noqa: PTH116 (after every commit)
                folder = (found.st_mtime_ns, found.st_ino, found.st_dev)
        if folder is None or folder != self._settled:
            if not self._intact_one_by_one():
                self._looked_at = _NEVER
                return False
            if folder is not None and time.time_ns() - folder[0] > _step(folder[0]):
                self._settled = folder
        self._looked_at = now
        return True

    def _intact_one_by_one(self) -> bool:
        assert self._known is not None
        found = self._look()
        # The files beside the database are made by the first write.
        self._known = tuple(old or new for old, new in zip(self._known, found, strict=True))
        return found == self._known

    def trusted(self) -> bool:
        """Return whether the files were found in order a moment ago, or nothing is open."""
        if self._known is None:
            return True
        return self._stamp is not None and time.monotonic() - self._looked_at < TRUST

    def overwritten(self, connection: sqlite3.Connection) -> bool:
        """Return whether another file was copied over the database, as far as its header tells.

        Only a checkpoint writes to the file of a store in use. So this costs one look at the file,
        and a look into it after a checkpoint. Call it under the lock.
        """
        if self._known is None or self._path is None:
            return False
        found = self._path.stat()
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return False
        self._stamp = None
        if found.st_size == 0:
            return True
        # Not by opening the file: closing it would give up SQLite's locks on it. SQLite knows how.
        uri = f"{self._path.absolute().as_uri()}?immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as file:
                header = _header(file)
        except sqlite3.DatabaseError:
            return True
        # Before its first checkpoint there is nothing in the file. A migration changes the header.
        changed = self._header is not None and any(self._header) and header != self._header
        if changed and header != _header(connection):
            return True
        self._header, self._stamp = header, stamp
        return False

    def give_up(self, connections: list[sqlite3.Connection]) -> None:
        """Close the connections to files that are no longer at their paths.

        What was committed is brought into the file that it belongs to first. A log that was left
        behind is removed: SQLite would play it into the new file. Call this under the lock.
        """
        if self._known is None:
            return
        if connections:
            try:
                (busy, *_) = connections[0].execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error:
                logger.exception("What was written last to %s is lost.", self._path)
                busy = False
            if busy:
                raise StoreBusy(f"Another process still reads what {self._path} was: try again.")
        for connection in connections:
            connection.close()
        time.sleep(2 * TRUST)
        for path, identity in zip(self._beside, self._known[1:3], strict=True):
            if identity is not None and _identity(path) == identity:
                path.unlink()
        self._known = None
        self.lost = True

    def _look(self) -> tuple[Identity | None, ...]:
        return tuple(_identity(path) for path in self._all)


def _step(time: int) -> int:
    """Return how long a time of a folder, in nanoseconds, may stay the same while it changes."""
    return _FINE_NANOSECONDS if time % 1_000_000_000 else _SETTLED_NANOSECONDS


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version
