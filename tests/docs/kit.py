"""Carrying out a page: its blocks, from top to bottom, in an empty folder.

- Python that begins with a comment like `# shop.py` is (another part of) that file, as is TOML; all
  other Python is a program that must end well without a word on stderr.
- `console` blocks are typed into a shell. What they show has to appear; `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w.]+\.(?:py|toml))\n")


class Folder:
    """Where a page is carried out, with the package as a Python has it.

    `user` has the options of `subprocess` that say who does so.
    """

    def __init__(self, path: Path, python: str, user: Mapping[str, Any]) -> None:
        self._path = path
        self._python = python
        self._user = user
        # The command need not be installed where the tests run.
        self._fairlane = f'{python} -m fairlane "$@";'
        ours = ("FAIRLANE", "PYTEST")
        mine = {
            name: value
            for name, value in os.environ.items()
            if not any(each in name for each in ours)
        }
        tools = str(Path(python).parent)
        self._environ = {**mine, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "100"}
        self._workers: list[subprocess.Popen[bytes]] = []

    def carry_out(self, kind: str, block: str) -> None:
        name = NAMED.match(block)
        if name is not None:
            with (self._path / name[1]).open("a") as file:
                file.write(block)
        elif kind == "python":
            done = self._run(self._python, "-W", "error", "-c", block)
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
                        ["/bin/bash", "-c", f"fairlane() {{ exec {self._fairlane} }}\n{command}"],
                        cwd=self._path,
                        env=self._environ,
                        stderr=log,
                        **self._user,
                    )
                self._workers.append(worker)
            else:
                script += line.removeprefix("$ ")
        done = self._run(
            "/bin/bash", "-c", f"exec 2>&1\nfairlane() {{ {self._fairlane} }}\n{script}"
        )
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
            **self._user,
        )

    def close(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait(60)


@contextmanager
def folder(
    path: Path, python: str = sys.executable, user: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Folder]:
    """A folder. What still runs there at the end is stopped."""
    made = Folder(path, python, user)
    try:
        yield made
    finally:
        made.close()
