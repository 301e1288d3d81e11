"""The keys of `fairlane top`."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairlane.cli.commands.top_screen import KEYS, Screen, Wish
from fairlane.client.app import Fairlane
from fairlane.core.facts import Facts
from tests.cli.kit import Cli, in_store, start
from tests.cli.test_limits import worker

pytestmark = pytest.mark.timeout(110)


async def read_facts(app: Fairlane) -> Facts:
    return await app.run(app.backend.ops.facts())


@pytest.fixture
def screen(ready: Cli) -> Screen:
    for name, count in (("beta", 3), ("alpha", 1), ("gamma", 2)):
        for _ in range(count):
            ready.submit(name)
    shown = Screen("sqlite:///fairlane.db")
    shown.take(in_store(read_facts))
    return shown


def drawn(screen: Screen) -> str:
    return "\n".join(line.plain for line in (*screen.lines(100), screen.footer()))


def types(screen: Screen) -> list[str]:
    return re.findall("^(alpha|beta|gamma) ", drawn(screen), re.MULTILINE)


def press(screen: Screen, keys: str) -> list[Wish]:
    return [wish for wish in map(screen.press, keys) if wish is not None]


def test_sorting(screen: Screen) -> None:
    assert types(screen) == ["alpha", "beta", "gamma"]
    press(screen, "s")
    assert types(screen) == ["beta", "gamma", "alpha"]
    assert "s sort: queued" in drawn(screen)
    press(screen, "ssss")
    assert types(screen) == ["alpha", "beta", "gamma"]


def test_filtering(screen: Screen) -> None:
    assert press(screen, "/Gqx") == []  # while a text is typed, q does not quit
    assert "/Gqx" in drawn(screen)
    press(screen, "\x7f\x7f")
    assert types(screen) == ["gamma"]
    press(screen, "\r")
    assert "/ filter: G" in drawn(screen)
    assert press(screen, "q") == [Wish.QUIT]
    press(screen, "\x1b")
    assert len(types(screen)) == 3
    press(screen, "/z\x1b")
    assert len(types(screen)) == 3


def test_workers_are_filtered_too(ready: Cli) -> None:
    worker_id = worker()
    shown = Screen("sqlite:///fairlane.db")
    shown.take(in_store(read_facts))
    press(shown, f"/{worker_id[:8].upper()}\n")
    assert f"{worker_id}  active" in drawn(shown)
    press(shown, "/no such worker\n")
    assert worker_id not in drawn(shown)


def test_pausing_takes_a_second_key(screen: Screen, ready: Cli) -> None:
    assert press(screen, "p") == []
    assert "Pause everything?  y: yes, any other key: no" in drawn(screen)
    assert press(screen, "n") == []
    assert press(screen, "py") == [Wish.PAUSE]
    ready.ok("pause", "--yes")
    screen.take(in_store(read_facts))
    assert "p resume" in drawn(screen)
    assert press(screen, "pY") == [Wish.RESUME]


def test_help_names_every_key(screen: Screen) -> None:
    footer = drawn(screen).splitlines()[-1]
    assert re.findall(r"(\S) (?:quit|sort|filter|pause|help)", footer) == list("qs/p?")
    press(screen, "?")
    for key, meaning in KEYS:
        assert f"{key}  {meaning}" in drawn(screen)
    press(screen, "?")
    assert types(screen)
    press(screen, "x")  # means nothing
    assert types(screen)


class Terminal:
    """A terminal with 24 lines of 100 characters."""

    def __init__(self) -> None:
        self.control, self.end = pty.openpty()
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self._seen = ""

    def type(self, keys: str) -> None:
        self._seen = ""
        os.write(self.control, keys.encode())

    def wait_for(self, text: str) -> None:
        """Until a text was drawn after the last keys."""
        deadline = time.monotonic() + 60
        while text not in self._seen:
            assert time.monotonic() < deadline, self._seen
            self._seen += os.read(self.control, 65536).decode("utf-8", "replace")


@contextmanager
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    try:
        yield made
    finally:
        os.close(made.end)
        os.close(made.control)


@contextmanager
def top_on(screen: Terminal) -> Iterator[subprocess.Popen[str]]:
    with start("top", stdin=screen.end, stdout=screen.end) as top:
        try:
            yield top
        finally:
            top.kill()  # if it still runs, the test has failed


def test_keys_on_a_terminal(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    ready.submit("alpha")
    with terminal() as screen, top_on(screen) as top:
        screen.wait_for("? help")
        screen.type("\x1b[A")  # an arrow is not Escape, and means nothing
        screen.type("s")
        screen.wait_for("s sort: queued")
        screen.type("?")
        screen.wait_for("show or hide this help")
        screen.type("?/al\r")
        screen.wait_for("/ filter: al")
        screen.type("p")
        screen.wait_for("Pause everything?")
        screen.type("y")
        screen.wait_for("Everything is paused.")
        assert ready.json("limit")["paused"] is True
        assert ready.json("audit")["entries"][0]["action"] == "flow.pause"
        screen.type("py")
        screen.wait_for("p pause")
        assert ready.json("limit")["paused"] is False
        screen.type("q")
        assert top.wait(60) == 0
        assert top.stderr is not None
        assert top.stderr.read() == ""
