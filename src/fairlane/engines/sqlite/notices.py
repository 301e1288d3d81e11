"""News from the kernel that a file was written to: prompt, and free of charge while there are none.

Linux has them (inotify); Python has no words for that, so these are its three calls.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

_MODIFIED: Final = 0x2
_READ_BYTES: Final = 64 * 1024


class Notices:
    """Writes to one file. Readable (`fileno`) when there were some."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if library.inotify_add_watch(descriptor, os.fsencode(path), _MODIFIED) < 0:
            error = OSError(ctypes.get_errno(), "inotify_add_watch", str(path))
            os.close(descriptor)
            raise error
        self._descriptor = descriptor

    @classmethod
    def of(cls, path: Path) -> Notices | None:
        """None where there is no such thing, or no more of it to be had."""
        try:
            return cls(path)
        except (OSError, AttributeError):
            return None

    def fileno(self) -> int:
        """Return what becomes readable."""
        return self._descriptor

    def clear(self) -> None:
        """Forget what has been noticed."""
        try:
            while len(os.read(self._descriptor, _READ_BYTES)) == _READ_BYTES:
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Notice no more."""
        os.close(self._descriptor)
