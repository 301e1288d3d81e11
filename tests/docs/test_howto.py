"""The how-to pages do what they say: each is carried out from top to bottom in an empty folder.

- Python that begins with a comment like `# shop.py` is (another part of) that file, as is TOML; all
  other Python is a program that must end well without a word on stderr.
- `console` blocks are typed into a shell. What they show has to appear; `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted((DOCS / "howto").glob("*.md")), DOCS / "engines.md"]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w.]+\.(?:py|toml))\n")

# As in the README's test: the command need not be installed where the tests run.
FAIRLANE = f'{sys.executable} -m fairlane "$@";'

pytestmark = pytest.mark.timeout(110)


class Folder:
    """Where a page is carried out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        mine = {name: value for name, value in os.environ.items() if "FAIRLANE" not in name}
        tools = str(Path(sys.executable).parent)
        self._environ = {**mine, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "100"}
        self._workers: list[subprocess.Popen[bytes]] = []

    def carry_out(self, kind: str, block: str) -> None:
        name = NAMED.match(block)
        if name is not None:
            with (self._path / name[1]).open("a") as file:
                file.write(block)
        elif kind == "python":
            done = self._run(sys.executable, "-W", "error", "-c", block)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
        elif kind == "console":
            self._type(block)

    def _type(self, block: str) -> None:
        script, shown = "", ""
        for line in block.splitlines(keepends=True):
            if not line.startswith("$ "):
                shown += line
            elif line.endswith(" &\n"):
                command = line.removeprefix("$ ").removesuffix(" &\n")
                with (self._path / "log").open("ab") as log:
                    worker = subprocess.Popen(
                        ["/bin/bash", "-c", f"fairlane() {{ exec {FAIRLANE} }}\n{command}"],
                        cwd=self._path,
                        env=self._environ,
                        stderr=log,
                    )
                self._workers.append(worker)
            else:
                script += line.removeprefix("$ ")
        done = self._run("/bin/bash", "-c", f"exec 2>&1\nfairlane() {{ {FAIRLANE} }}\n{script}")
        wanted = re.escape(shown).replace("…", ".*?")
        told = (self._path / "log").read_text() if self._workers else ""
        troubles = re.compile("^Error:|Traceback|not found", re.MULTILINE)
        assert len(troubles.findall(done.stdout)) == len(troubles.findall(shown)), done.stdout
        assert re.fullmatch(wanted, done.stdout, re.DOTALL), f"{script}{done.stdout}{told}"

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._path,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def close(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait(60)


@contextmanager
def folder(path: Path) -> Iterator[Folder]:
    made = Folder(path)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    with folder(tmp_path) as here:
        for kind, block in blocks:
            here.carry_out(kind, block)


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    linked = [page.relative_to(DOCS) for page in PAGES]
    assert [str(page) for page in linked if f"({page})" not in index] == []
    assert len(PAGES) > 10


def test_what_a_page_shows_has_to_appear(tmp_path: Path) -> None:
    with folder(tmp_path) as here:
        here.carry_out("console", "$ echo one two\n$ x=three; echo $x\none …\nthree\n")
        with pytest.raises(AssertionError):
            here.carry_out("console", "$ echo one\ntwo\n")
        with pytest.raises(AssertionError):
            here.carry_out("python", "raise SystemExit(1)")


# -- what stands on the pages and is not run -------------------------------------------------------


def test_the_systemd_unit_starts_a_worker_that_can_be() -> None:
    page = (ROOT / "docs" / "howto" / "production.md").read_text()
    (command,) = re.findall(r"^ExecStart=\S*/fairlane (.*)$", page, re.MULTILINE)
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", page, re.MULTILINE)
    (grace,) = re.findall(r"--grace (\d+)", command)
    assert int(stop) > int(grace) + 15
    shown = subprocess.run(
        [sys.executable, "-m", "fairlane", "worker", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(re.findall(r"--[a-z-]+", command)) <= set(re.findall(r"--[a-z-]+", shown.stdout))
