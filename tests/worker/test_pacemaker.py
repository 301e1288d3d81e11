"""What the pacemaker does. Whole processes are in tests/e2e/chaos/test_hogs.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.worker import pacemaker_process
from fairlane.worker.pacemaker import Pacemaker
from fairlane.worker.pacemaker_process import KEPT, is_suspended, keep
from tests.worker.kit import PATIENCE

LEASE = 30.0
SIGN = 0.02


class Keeping:
    """A pacemaker in a thread of this process, whose heartbeats are counted."""

    def __init__(self, lease: float = LEASE) -> None:
        self.beats = threading.Semaphore(0)
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(PATIENCE)
        setup: dict[str, Any] = {
            "path": sys.path,
            "url": "",
            "token": None,
            "options": {},
            "worker_id": "w",
        }
        self.ours.send(json.dumps({**setup, "lease": lease, "sign": SIGN}).encode())
        self.thread = threading.Thread(target=self._keep, args=[theirs])

    def _keep(self, theirs: socket.socket) -> None:
        with theirs:
            keep(theirs, os.getppid())

    def beat(self) -> float:
        self.beats.release()
        return LEASE


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeping]:
    kept = Keeping(lease=0.3)
    monkeypatch.setattr(pacemaker_process, "connect", lambda _: kept.beat)
    monkeypatch.setattr(pacemaker_process, "is_suspended", lambda _: False)
    yield kept
    kept.ours.close()
    kept.thread.join(PATIENCE)
    assert not kept.thread.is_alive()  # it ends with the worker


def test_it_keeps_the_lease_while_the_worker_is_silent(keeping: Keeping) -> None:
    began = time.monotonic()
    keeping.thread.start()
    keeping.ours.send(b"60")
    for _ in range(3):
        assert keeping.beats.acquire(timeout=PATIENCE)
        (until,) = KEPT.unpack(keeping.ours.recv(KEPT.size))
        assert until >= began + LEASE


def test_it_keeps_the_lease_no_longer_than_allowed(keeping: Keeping) -> None:
    keeping.thread.start()  # without a sign: for one lease
    assert keeping.beats.acquire(timeout=PATIENCE)
    while keeping.beats.acquire(timeout=1.0):
        pass


def test_it_does_nothing_while_there_are_signs(keeping: Keeping) -> None:
    keeping.thread.start()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        keeping.ours.send(b"60")
        time.sleep(SIGN / 4)
    keeping.ours.send(b"60")
    assert keeping.beats._value <= 1  # this thread may have been late


def test_a_suspended_process_is_not_kept() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert not is_suspended(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            assert is_suspended(process.pid)
        finally:
            process.kill()
    assert is_suspended(process.pid)  # nor one that has ended


def test_a_new_promise_is_only_made_when_it_is_needed() -> None:
    promised = Pacemaker(Fairlane("sqlite:///x.db"), "w", LEASE, lambda: 0.0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.settimeout(0)
        promised._ours = ours
        promised.allow(600)
        promised.allow(600)
        promised.allow(60)
        assert float(theirs.recv(100)) == 600 + LEASE
        with pytest.raises(BlockingIOError):
            theirs.recv(100)
        promised.allow(3600)
        assert float(theirs.recv(100)) == 3600 + LEASE
