"""What the pacemaker does. Whole processes are in tests/e2e/chaos/test_hogs.py."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.worker import pacemaker_process
from fairlane.worker.pacemaker import Pacemaker
from fairlane.worker.pacemaker_process import KEPT, Setup, Stall, count_waiting, is_suspended, keep
from tests.worker.kit import PATIENCE

LEASE = 30.0
SIGN = 0.02
SHORT_LEASE = 0.3
WAIT = """
import fcntl, sys
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
"""


def setup(lease: float, sign: float) -> Setup:
    return {
        "path": sys.path,
        "url": "",
        "token": None,
        "options": {},
        "worker_id": "w",
        "lease": lease,
        "sign": sign,
        "lock_file": "lock",
    }


class Keeping:
    """A pacemaker in a thread of this process, whose heartbeats are counted."""

    def __init__(self, lease: float = LEASE) -> None:
        self.beats = threading.Semaphore(0)
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(PATIENCE)
        self.ours.send(json.dumps(setup(lease, SIGN)).encode())
        self.thread = threading.Thread(target=self._keep, args=[theirs])

    def _keep(self, theirs: socket.socket) -> None:
        with theirs:
            keep(theirs, os.getppid())

    def beat(self) -> float:
        self.beats.release()
        return LEASE


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeping]:
    kept = Keeping(SHORT_LEASE)
    monkeypatch.setattr(pacemaker_process, "connect", lambda _: kept.beat)
    monkeypatch.setattr(pacemaker_process, "is_suspended", lambda _: False)
    monkeypatch.setattr(pacemaker_process, "count_waiting", lambda *_: None)
    monkeypatch.setattr(pacemaker_process, "STALL_SECONDS", 0.0)
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


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> queue.SimpleQueue[tuple[int, int]]:
    """The signals that are sent, instead of sending them."""
    sent: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    monkeypatch.setattr(os, "kill", lambda *signalled: sent.put(signalled))
    return sent


def test_a_worker_that_keeps_others_from_writing_is_killed(
    keeping: Keeping,
    killed: queue.SimpleQueue[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(pacemaker_process, "count_waiting", lambda *_: 1)
    keeping.thread.start()
    keeping.ours.send(b"60")
    assert killed.get(timeout=PATIENCE) == (os.getppid(), signal.SIGKILL)
    assert keeping.beats._value == 0, "a heartbeat would wait for the worker, too"
    keeping.thread.join(PATIENCE)
    assert "kept others from writing: it is killed" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("waiting", "state"), [(0, "T"), (None, "T"), (1, "t")], ids=["alone", "no lock", "debugged"]
)
def test_other_workers_that_stand_still_are_not_killed(
    keeping: Keeping,
    killed: queue.SimpleQueue[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    waiting: int | None,
    state: str,
) -> None:
    looks = threading.Semaphore(0)

    def counted(*_: Any) -> int | None:
        looks.release()
        return waiting

    monkeypatch.setattr(pacemaker_process, "count_waiting", counted)
    monkeypatch.setattr(pacemaker_process, "state_of", lambda _: state)
    keeping.thread.start()
    for _ in range(3 * round(SHORT_LEASE / SIGN)):
        assert looks.acquire(timeout=PATIENCE)
    assert killed.empty()


def test_time_in_which_the_pacemaker_was_suspended_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pacemaker_process, "count_waiting", lambda *_: 1)
    monkeypatch.setattr(pacemaker_process, "state_of", lambda _: "T")
    stall = Stall(1, setup(lease=30.0, sign=1.0))
    assert [stall.look(now, 100.0) for now in (103.0, 111.0, 112.0)] == [False, False, True]
    assert [stall.look(now, 200.0) for now in (203.0, 260.0, 271.0, 272.0)] == [*[False] * 3, True]
    assert not stall.look(360.0, 300.0), "nor before the first look"


def test_those_who_wait_for_a_lock_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    me = os.getpid()
    with path.open() as file, path.open() as another:
        assert count_waiting(me, str(path)) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert count_waiting(me, str(path)) == 0
        assert count_waiting(os.getppid(), str(path)) is None
        waiting = threading.Thread(target=fcntl.flock, args=[another, fcntl.LOCK_EX])
        waiting.start()
        with subprocess.Popen([sys.executable, "-c", WAIT, str(path)]) as other:
            until = time.monotonic() + PATIENCE
            while not count_waiting(me, str(path)):
                assert time.monotonic() < until
                assert other.poll() is None
            assert count_waiting(me, str(path)) == 1, "its own thread does not count"
            fcntl.flock(file, fcntl.LOCK_UN)
            waiting.join(PATIENCE)
            fcntl.flock(another, fcntl.LOCK_UN)
            assert other.wait(PATIENCE) == 0
    assert count_waiting(me, str(path)) is None
    assert count_waiting(me, str(tmp_path / "missing")) is None


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
