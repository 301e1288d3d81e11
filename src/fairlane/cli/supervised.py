"""A process that a supervisor has started: it follows the supervisor, and tells it how it is.

Its standard input is a socket. The socket ends with the supervisor; the process writes signs to it.
An exit code is no sign: a handler can end the process with any code.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import Final

READY: Final = b"R"
"""The settings are right: the process works from now on."""
LEFT: Final = b"L"
"""The process ends on purpose, and is not to be restarted."""


def follow_supervisor() -> None:
    """Stop when the supervisor is gone, which ends this process's standard input."""

    def wait() -> None:
        with suppress(ConnectionError):  # signs that the supervisor has not read reset the socket
            while os.read(0, 1024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="fairlane-supervisor", daemon=True).start()


def give_sign(sign: bytes) -> None:
    """Send a sign to the supervisor, if it is still there."""
    with suppress(OSError):
        os.write(0, sign)
