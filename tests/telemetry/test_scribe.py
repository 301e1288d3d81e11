"""Whoever writes the log for others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from fairlane.telemetry import scribe
from fairlane.telemetry.scribe import Scribe

SECONDS = 20


def test_all_is_done_in_order_by_another_thread() -> None:
    done: list[int] = []
    threads: set[int] = set()
    writer = Scribe()
    for number in range(500):
        writer.hand(partial(done.append, number))
    writer.hand(lambda: threads.add(threading.get_ident()))
    writer.finish()
    assert done == list(range(500))
    assert threads != {threading.get_ident()}
    writer.finish()  # when there is nothing to do


def test_what_fails_does_not_keep_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    writer = Scribe()
    writer.hand(partial(done.remove, "nothing"))
    writer.hand(partial(done.append, "after"))
    writer.finish()
    assert done == ["after"]
    assert "could not be logged" in caplog.text


def test_a_log_that_cannot_keep_up_holds_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scribe, "MOST", 2)
    gate = threading.Event()
    writer = Scribe()
    handed: list[int] = []

    def fill() -> None:
        for number in range(5):
            writer.hand(gate.wait)
            handed.append(number)

    filling = threading.Thread(target=fill)
    filling.start()
    filling.join(0.2)
    assert filling.is_alive()
    assert len(handed) == 2
    gate.set()
    filling.join(SECONDS)
    assert handed == list(range(5))
    writer.finish()


def test_the_thread_ends_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scribe, "IDLE_SECONDS", 0.01)
    found: list[threading.Thread] = []
    writer = Scribe()
    for _ in range(2):
        writer.hand(lambda: found.append(threading.current_thread()))
        writer.finish()
        deadline = time.monotonic() + SECONDS
        while found[-1].is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.005)
    assert found[0] is not found[1]


PROGRAM = """
import time
from fairlane.telemetry.scribe import Scribe
Scribe().hand(lambda: (time.sleep(0.2), print("written")))
"""


def test_a_program_that_ends_waits_for_what_was_handed_in() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("written\n", "")
