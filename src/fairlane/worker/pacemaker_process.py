"""The process of a pacemaker: see `fairlane.worker.pacemaker`.

Started as `python pacemaker_process.py <socket> <worker's pid>`. It imports nothing but a few
modules of the standard library before it has to send a heartbeat, which most never have to. If the
lease is short, it is prepared.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, TypedDict

KEPT = struct.Struct("d")
"""Tells the worker until when its lease holds."""
QUIET_SIGNS = 3
"""After this many signs that did not come the pacemaker sends heartbeats."""
SUSPENDED = frozenset("TtZX")
"""The states of a process that is stopped, traced, or ended."""
TRACED = "t"
SHORT_LEASE_SECONDS = 15.0
STALL_SHARE = 0.4
"""For which share of its lease a worker that stands still may keep others from writing. When it
begins, their last heartbeats are up to a third of a lease old; they give up when a tenth is left.
"""
STALL_SECONDS = 2.0
"""At least so long: a busy machine may keep a process waiting, too."""
MESSAGE_BYTES = 1 << 17


class Setup(TypedDict):
    """The first message: how to reach the store, and for whom. Times are in seconds."""

    path: list[str]
    url: str
    token: str | None
    options: dict[str, Any]
    worker_id: str
    lease: float
    sign: float
    lock_file: str | None


def keep(connection: socket.socket, worker: int) -> None:
    """Keep the lease of the worker, a process, whenever its signs stop. Return when it ends.

    End it if it stands still with the lock of the store in its hands and others wait for that:
    nobody else can take the lock away, and all of them would lose their leases.
    """
    first = connection.recv(MESSAGE_BYTES)
    if not first:
        return
    setup: Setup = json.loads(first)
    # To import the engine may take seconds on a busy machine, which a short lease does not leave.
    beat = connect(setup) if setup["lease"] < SHORT_LEASE_SECONDS else None
    heard = due = time.monotonic()
    allowed_until = heard + setup["lease"]
    stall = Stall(worker, setup)
    while os.getppid() == worker:
        if select.select([connection], [], [], setup["sign"])[0]:
            try:
                sign = connection.recv(MESSAGE_BYTES)
            except ConnectionError:  # the worker has ended without reading the last message
                return
            if not sign:
                return
            heard = time.monotonic()
            allowed_until = max(allowed_until, heard + float(sign))
            continue
        now = time.monotonic()
        if now - heard < QUIET_SIGNS * setup["sign"]:
            continue
        if stall.look(now, heard):
            sys.stderr.write(
                f"Worker process {worker} was stopped or blocked while it wrote, and kept others "
                "from writing: it is killed\n"
            )
            os.kill(worker, signal.SIGKILL)
            return
        # While the worker has the lock, no heartbeat gets past it either.
        if stall.locked or now > allowed_until or now < due or is_suspended(worker):
            continue
        if beat is None:
            beat = connect(setup)
        try:
            connection.send(KEPT.pack(now + beat()))
            due = now + setup["lease"] / 3
        except ConnectionError:
            return
        except Exception as error:  # noqa: BLE001 (heartbeats go on after any error)
            sys.stderr.write(f"The pacemaker cannot send a heartbeat: {type(error).__name__}\n")
            due = now + setup["lease"] / 10


class Stall:
    """How long a worker that gives no signs has kept others from writing."""

    def __init__(self, worker: int, setup: Setup) -> None:
        self._worker = worker
        self._file = setup["lock_file"]
        self._most = max(setup["lease"] * STALL_SHARE, STALL_SECONDS)
        self._pause = setup["lease"] / 3 + QUIET_SIGNS * setup["sign"]
        """More time than this between two looks was a pause of this process: in such a time the
        worker may have been suspended, too, as by Ctrl-Z or with the whole machine."""
        self._looked = self._free_at = float("-inf")
        self.locked = False
        """Whether the worker had the lock at the last look."""

    def look(self, now: float, heard: float) -> bool:
        """Return whether it has taken too long, if the last sign was heard at that time."""
        waiting = None if self._file is None else count_waiting(self._worker, self._file)
        self.locked = waiting is not None
        paused = now - max(self._looked, heard) > self._pause
        if not waiting or paused or state_of(self._worker) == TRACED:
            self._free_at = now
        self._looked = now
        return now - max(self._free_at, heard) >= self._most


def count_waiting(process: int, file: str) -> int | None:
    """Return how many other processes wait for the lock that this one has on a file.

    None: it does not have the lock. Not counted is the process that asks.
    """
    try:
        inode = str(os.stat(file).st_ino)  # noqa: PTH116 (pathlib is large)
        with open("/proc/locks") as locks:  # noqa: PTH123
            lines = [line.split() for line in locks]
    except OSError:
        return None
    # "1: FLOCK ADVISORY WRITE <pid> <device>:<inode> 0 EOF"; who waits has "->" behind the number.
    held = {
        line[0]
        for line in lines
        if line[1] == "FLOCK" and line[4] == str(process) and line[5].split(":")[-1] == inode
    }
    if not held:
        return None
    own = {str(process), str(os.getpid())}
    return sum(line[0] in held and line[1] == "->" and line[5] not in own for line in lines)


def is_suspended(process: int) -> bool:
    """Return whether a process is stopped: others are to take over its tasks then."""
    return state_of(process) in SUSPENDED


def state_of(process: int) -> str:
    """Return the state of a process as `ps` shows it: X if there is no such process."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 (pathlib is large)
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "X"


def connect(setup: Setup) -> Callable[[], float]:
    """Return what sends a heartbeat, and returns for how many seconds the lease holds then."""
    sys.path[:] = setup["path"]
    from fairlane.client.app import Fairlane  # noqa: PLC0415 (only now: it needs time and memory)
    from fairlane.core.model import Beat  # noqa: PLC0415

    backend = Fairlane(setup["url"], token=setup["token"], **setup["options"]).backend

    def beat() -> float:
        op = backend.ops.heartbeat(Beat(setup["worker_id"]))
        return backend.run_sync(op.within(setup["lease"] / 3, setup["sign"])).remaining

    return beat


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they are for the worker; this ends with it
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        keep(connection, int(sys.argv[2]))


if __name__ == "__main__":
    main()
