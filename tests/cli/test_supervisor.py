"""What a supervisor makes of the ends of its processes: small scripts stand in for workers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from fairlane.cli import supervisor
from fairlane.cli.supervisor import Supervisor

pytestmark = pytest.mark.timeout(110)

CHILD = """
import ctypes, os, signal, sys, threading, time
from pathlib import Path
from fairlane.cli.supervised import LEFT, READY, give_sign

turn = Path("turns", str(os.getpid()))
turn.touch()
first = len(list(turn.parent.iterdir())) == 1

def leave():
    give_sign(LEFT)
    os._exit(0)

"""

CODES = (0, 1, 2, 3, 70, 255)
ENDS = {
    **{f"os._exit({code})": f"ended with exit code {code}" for code in CODES},
    "sys.exit(2)": "ended with exit code 2",
    "os.abort()": "was ended by SIGABRT",
    "ctypes.string_at(0)": "was ended by SIGSEGV",
    "os.kill(os.getpid(), signal.SIGKILL)": "was ended by SIGKILL",
    "os.kill(os.getpid(), signal.SIGTERM)": "was ended by SIGTERM",
    "os.kill(os.getpid(), signal.SIGRTMIN + 2)": "was ended by signal 36",
    "threading.Thread(target=os._exit, args=[0]).start(); time.sleep(60)": "with exit code 0",
    "os.fork(); os._exit(0)": "ended with exit code 0",
}


@pytest.fixture(autouse=True)
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each process leaves a file. Restarts do not wait."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    (tmp_path / "turns").mkdir()
    return tmp_path / "turns"


async def supervise(script: str, count: int = 1, patience: float | None = None) -> int:
    command = [sys.executable, "-c", CHILD + script]
    return await Supervisor(command, os.environ, count, patience=patience).run()


@pytest.mark.parametrize("end", ENDS)
async def test_no_exit_code_counts_as_leaving(
    end: str, turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await supervise(f"give_sign(READY)\nif first: {end}\nleave()") == 0
    assert len(list(turns.iterdir())) == 2
    restarted, left = capsys.readouterr().err.splitlines()
    assert restarted.startswith("Worker process 1 ")
    assert f"{ENDS[end]}: it is restarted in 0.01 s." in restarted
    assert left == "Worker process 1 has left."


async def test_who_leaves_is_not_restarted_whatever_its_exit_code_is(turns: Path) -> None:
    assert await supervise("give_sign(READY)\ngive_sign(LEFT)\nos._exit(9)", 2) == 0
    assert len(list(turns.iterdir())) == 2


async def test_wrong_settings_are_not_tried_again(turns: Path) -> None:
    assert await supervise("os._exit(2)") == 2
    assert len(list(turns.iterdir())) == 1


async def test_settings_that_were_right_before_are_tried_again(
    turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second process fails as with a wrong command line; its sibling proves the contrary."""
    script = """
if first:
    give_sign(READY)
    while len(list(turn.parent.iterdir())) < 4:
        time.sleep(0.01)
    leave()
while not Path("sibling").exists() and len(list(turn.parent.iterdir())) < 3:
    Path("sibling").touch()
    time.sleep(0.3)
if len(list(turn.parent.iterdir())) < 4:
    os._exit(2)
leave()
"""
    assert await supervise(script, 2) == 0
    assert len(list(turns.iterdir())) == 4
    assert capsys.readouterr().err.count("ended with exit code 2: it is restarted") == 2


async def test_who_does_not_hear_the_signal_is_killed(
    turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ngive_sign(READY)\nprint()\n"
    running = asyncio.create_task(
        supervise(script + "Path('deaf').touch()\nsignal.pause()", 1, 0.1)
    )
    while not Path("deaf").exists():  # noqa: ASYNC110 (another process makes it)
        await asyncio.sleep(0.01)
    signal.raise_signal(signal.SIGTERM)
    assert await running == 1
    assert len(list(turns.iterdir())) == 1
    assert "A worker process has not left in time: it is killed." in capsys.readouterr().err
