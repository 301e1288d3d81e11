"""The first hour of a new user: the wheel in an empty environment, then README and tutorial."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs import newcomer
from tests.docs.kit import ROOT

pytestmark = pytest.mark.timeout(110)

README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
SESSION = re.compile(r"^```\n(\$ fairlane .*?)^```", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Shell:
    """A terminal in an empty folder, where the package was installed and nothing else."""

    def __init__(self, folder: Path, tools: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._folder = folder
        # The address that pages print may be taken where tests run.
        self._environ = {
            "HOME": str(folder),
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
            "FAIRLANE_PORT": str(self.port),
        }
        self._log = folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def type(self, command: str) -> str:
        """What a command prints. One that ends in & goes on until the end."""
        command = command.replace(":8000", f":{self.port}")
        if re.search(r"&(\s+#.*)?$", command):
            self._start(command.partition("&")[0])
            return ""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self._folder,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **newcomer.identity(),
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr + self._said()
        return done.stdout

    def _start(self, command: str) -> None:
        with self._log.open("ab") as log:
            started = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environ,
                stderr=log,
                **newcomer.identity(),
            )
        self._running.append(started)

    def wait_for(self, text: str) -> None:
        """Until a command that goes on has said a text."""
        deadline = time.monotonic() + 60
        while text not in self._said():
            assert time.monotonic() < deadline, self._said()
            assert all(each.poll() is None for each in self._running), self._said()
            time.sleep(0.05)

    def _said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def close(self) -> None:
        for each in self._running:
            each.terminate()
        codes = [each.wait(60) for each in self._running]
        assert codes == [0] * len(codes), self._said()


@pytest.fixture(scope="module")
def tools() -> Path:
    """The programs of an environment that has the wheel and what it depends on."""
    return newcomer.environment()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a newcomer works."""
    with newcomer.home() as home:
        yield home


@contextmanager
def shell_in(folder: Path, tools: Path) -> Iterator[Shell]:
    shell = Shell(folder, tools)
    try:
        yield shell
    finally:
        shell.close()


def test_the_readme(tools: Path, folder: Path) -> None:
    (program,) = PYTHON.findall(README)
    work, serve = SESSION.findall(README)
    with shell_in(folder, tools) as shell:
        shell.write("shop.py", program)
        start, submit, printed = work.splitlines()
        shell.type(start.removeprefix("$ "))
        assert shell.type(submit.removeprefix("$ ")).strip() == printed
        assert re.fullmatch(r"[0-9a-f-]{36}\n", shell.type("python shop.py"))
        start, submit = serve.removeprefix("$ ").split("\n$ ")
        shell.type(start)
        shell.wait_for("Ctrl-C stops it.")
        accepted = json.loads(shell.type(submit))
        found = json.loads(
            shell.type(f"fairlane status {accepted['task_id']} --json --store sqlite:///tasks.db")
        )
        assert found["task_type"] == "greet"


def test_the_tutorial(tools: Path, folder: Path) -> None:
    program = "\n\n".join(PYTHON.findall(TUTORIAL))
    (promised,) = re.findall(r"print\(.*\)  # (.*)", program)
    with shell_in(folder, tools) as shell:
        shell.write("shop.py", program)
        assert shell.type("python shop.py").strip() == promised
        look = "fairlane top --json --store sqlite:///shop.db"
        before = json.loads(shell.type(look))["stats"]["by_status"]
        (start,) = re.findall("^fairlane worker .*$", TUTORIAL, re.MULTILINE)
        shell.type(f"{start} &")
        shell.wait_for("is ready for send_invoice")
        stats = json.loads(shell.type(look))["stats"]
        assert stats["workers"]["active"] == 1
        # The worker has imported the file, which submitted nothing again.
        assert sum(stats["by_status"].values()) == sum(before.values()) > 100


def test_up_without_anything_else(tools: Path, folder: Path) -> None:
    with shell_in(folder, tools) as shell:
        shell.type("fairlane up &")
        shell.wait_for("Open it in a browser, or run `fairlane top --store ")
        address = "http://127.0.0.1:8000"
        assert "<title>Fairlane" in shell.type(f"curl -s {address}/")
        answer = shell.type(f"curl -s {address}/api/v1/queue/stats")
        assert sum(json.loads(answer)["by_status"].values()) == 9
        assert "1 active" in shell.type("fairlane stats")
        assert "fairlane_" in shell.type(f"curl -s {address}/metrics")
