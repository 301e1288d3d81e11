"""`fairlane up --demo` and `make up` in a terminal: Ctrl-C reaches the whole process group."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.kit import Cli, command
from tests.cli.test_processes import Running, watched
from tests.cli.test_server import Site

pytestmark = pytest.mark.timeout(110)

ROOT = Path(__file__).parents[2]
STOPPING = "Ctrl-C again stops at once, and running tasks go back to their queues."


@contextmanager
def terminal(*typed: str) -> Iterator[Running]:
    """A command as a shell starts it: in a process group of its own."""
    process = subprocess.Popen(
        typed,
        env={**os.environ, "FAIRLANE_LOG_TRANSITIONS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        with watched(process) as held:
            yield held
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def press_ctrl_c(held: Running) -> None:
    os.killpg(held.process.pid, signal.SIGINT)


def assert_busy(held: Running) -> None:
    """It answers, and tasks run."""
    site = Site(held)
    assert site.ask("GET", "/api/v1/queue/stats")[0] == 200
    held.wait_for(" started, attempt ")


def assert_gone(held: Running) -> None:
    with pytest.raises(ProcessLookupError):
        os.killpg(held.process.pid, 0)


def assert_nothing_is_left(cli: Cli, held: Running) -> None:
    """Its processes are gone, and the store knows of no worker and no run."""
    with pytest.raises(ProcessLookupError):
        os.killpg(held.process.pid, 0)
    assert cli.json("stats")["by_status"]["executing"] == 0
    assert cli.json("workers")["workers"] == []


def checkout() -> None:
    """Make the working folder a checkout that has an environment."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, ".")
    Path(".venv").mkdir()
    Path(".venv/bin").symlink_to(Path(sys.executable).parent)
    Path(".venv/.runs").touch()  # installed after pyproject.toml was changed


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (command("up", "--demo", "--port", "0"), 0),
        (["make", "up", "PORT=0"], -signal.SIGINT),  # make itself ends by Ctrl-C
    ],
    ids=["fairlane", "make"],
)
def test_ctrl_c_says_what_it_waits_for(cli: Cli, typed: list[str], code: int) -> None:
    checkout()
    with terminal(*typed) as held:
        assert_busy(held)
        press_ctrl_c(held)
        held.wait_for(STOPPING)
        (told,) = [line for line in held.said.splitlines() if STOPPING in line]
        assert " still run, for up to 30 s: " in told
        assert held.ended() == code
        assert_nothing_is_left(cli, held)


def test_ctrl_c_again_stops_at_once(cli: Cli) -> None:
    with terminal(*command("up", "--demo", "--port", "0")) as held:
        assert_busy(held)
        press_ctrl_c(held)
        held.wait_for(STOPPING)
        press_ctrl_c(held)
        held.wait_for("Stopping at once: running tasks go back to their queues.")
        assert held.ended() == 0
        assert_nothing_is_left(cli, held)
