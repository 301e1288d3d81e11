"""The lock that every Fairlane process takes before it writes to a SQLite file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """A blocking lock on a file beside the database: fair, and freed by the kernel with its holder.

    Without a path (a store in memory) there is nobody to lock out.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self, *, wait: bool) -> bool:
        """Take the lock; False when someone else has it and we do not wait."""
        if self._path is None:
            return True
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file itself."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
