"""The pacemaker: a small process that keeps the worker's lease while a handler blocks the whole
interpreter.

Some calls do not release the interpreter's lock: a regular expression that backtracks, a C library.
As long as one of them runs, no thread of the worker can send a heartbeat. So the worker gives the
pacemaker a sign every second. If the signs stop, the pacemaker sends the heartbeats itself, on a
connection of its own, for as long as the worker has allowed: until the time limits of all tasks
that the worker was given are over. It does nothing while the worker is suspended, and ends with it.

On SQLite a worker that is suspended, or blocked, while it writes keeps everybody from writing. The
pacemaker kills it after 0.4 of its lease if others wait: only its end gives the lock back.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairlane.client.app import Fairlane
from fairlane.worker import pacemaker_process
from fairlane.worker.pacemaker_process import KEPT, Setup

logger = logging.getLogger("fairlane.worker")

SIGN_SECONDS = 1.0
SIGN_SHARE = 15
"""The worker gives a sign every second, or every fifteenth of its lease if that is less."""
ENDING_SECONDS = 2.0


class Pacemaker:
    """The process beside a worker, as the worker sees it. `allowance` returns for how many seconds
    it may keep the lease without another sign."""

    def __init__(
        self, app: Fairlane, worker_id: str, lease: float, allowance: Callable[[], float]
    ) -> None:
        self._setup: Setup = {
            "path": sys.path,
            "url": app.url,
            "token": app.token,
            "options": dict(app.store_options),
            "worker_id": worker_id,
            "lease": lease,
            "sign": min(SIGN_SECONDS, lease / SIGN_SHARE),
            "lock_file": app.backend.driver.lock_file,
        }
        self._allowance = allowance
        self._lease = lease
        self._promised_until = 0.0
        self._kept_until = 0.0
        self._ours: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the process. It is ready when it is needed."""
        try:
            setup = json.dumps(self._setup).encode()
        except TypeError:
            logger.warning("The store is opened with options that the pacemaker cannot be given")
            return
        # Messages arrive whole, and the end of either side is noticed.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(0)
        with theirs:
            command = [sys.executable, "-P", str(Path(pacemaker_process.__file__))]
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        ours.send(setup)
        self._ours = ours
        threading.Thread(target=self._sign, name="fairlane-pacemaker", daemon=True).start()

    def stop(self) -> None:
        """End the process, and wait for it."""
        self._stopped.set()
        if self._process is None or self._ours is None:
            return
        self._ours.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._ours.close()

    def allow(self, seconds: float) -> None:
        """Let it keep the lease for at least so long. Call this before a handler may block."""
        now = time.monotonic()
        if now + seconds > self._promised_until:
            self._promised_until = now + seconds + self._lease  # so that this is rare
            self._give_sign(seconds + self._lease)

    def kept_until(self) -> float:
        """Return until when the lease holds that the pacemaker has renewed, by the monotonic clock,
        which is the same for all processes."""
        if self._ours is not None:
            with suppress(OSError):  # nothing new, or it has ended
                while answer := self._ours.recv(KEPT.size):
                    self._kept_until = max(self._kept_until, KEPT.unpack(answer)[0])
        return self._kept_until

    def _sign(self) -> None:
        while not self._stopped.wait(self._setup["sign"]):
            if not self._give_sign(self._allowance()):
                return

    def _give_sign(self, allowed: float) -> bool:
        """Give a sign, and return whether the process is there."""
        if self._ours is None:
            return False
        try:
            self._ours.send(str(allowed).encode())
        except BlockingIOError:
            return True  # it is busy; the next sign will do
        except OSError:
            if not self._stopped.is_set():
                logger.warning("The pacemaker has ended: a handler can block heartbeats")
            return False
        return True
