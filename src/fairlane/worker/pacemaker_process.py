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
SHORT_LEASE_SECONDS = 15.0
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


def keep(connection: socket.socket, worker: int) -> None:
    """Keep the lease of the worker, a process, whenever its signs stop. Return when it ends."""
    first = connection.recv(MESSAGE_BYTES)
    if not first:
        return
    setup: Setup = json.loads(first)
    # To import the engine may take seconds on a busy machine, which a short lease does not leave.
    beat = connect(setup) if setup["lease"] < SHORT_LEASE_SECONDS else None
    heard = due = time.monotonic()
    allowed_until = heard + setup["lease"]
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
        quiet = now - heard >= QUIET_SIGNS * setup["sign"]
        if not quiet or now > allowed_until or now < due or is_suspended(worker):
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


def is_suspended(process: int) -> bool:
    """Return whether a process is stopped: others are to take over its tasks then."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 (pathlib is large)
            return file.read().rpartition(b")")[2].split()[0].decode() in SUSPENDED
    except OSError:
        return True


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
