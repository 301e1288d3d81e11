"""What a new user has: the wheel in an environment of its own, and no rights of root."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from tests.docs.kit import BLOCK, ROOT

UV = Path(sys.executable).with_name("uv")
DEBIANS = Path("/usr/bin/python3")
NOBODY = 65534
"""On every Linux."""
INSTALL = re.compile(r"pip install ([^`]*)`")


def identity() -> dict[str, Any]:
    """Options of `subprocess` by which a program runs without the rights of root."""
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": ()}


@contextmanager
def home() -> Iterator[Path]:
    """An empty folder of the user that programs run as. pytest's own folders are private."""
    with TemporaryDirectory(prefix="fairlane-newcomer-", ignore_cleanup_errors=True) as made:
        if os.geteuid() == 0:
            os.chown(made, NOBODY, NOBODY)
        yield Path(made)


@cache
def interpreter() -> Path:
    """A Python that everybody may run: this one, or Debian's if this one is in a private folder."""
    here = Path(sys.executable).resolve()
    if os.geteuid() != 0 or all(each.stat().st_mode & stat.S_IXOTH for each in here.parents):
        return here
    return DEBIANS


@cache
def wheel() -> Path:
    """The package as it is published."""
    folder = _kept()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@cache
def environment(requirements: tuple[str, ...] = ("fairlane",)) -> Path:
    """Make an environment with these packages, and return the folder of its programs.

    Nobody can write into it, so it is compiled now, and can be used again.
    """
    made = _kept()
    _uv("venv", "--python", str(interpreter()), str(made))
    python = made / "bin" / "python"
    _uv("pip", "install", "--compile-bytecode", f"--python={python}", *map(_local, requirements))
    return made / "bin"


def _kept() -> Path:
    """A folder that everybody can read, until this process ends."""
    folder = Path(mkdtemp(prefix="fairlane-newcomer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


def requirements_of(page: str) -> tuple[str, ...]:
    """The package, and what the text of a page says is needed besides."""
    text = BLOCK.sub("", page)
    named = {each for found in INSTALL.findall(text) for each in shlex.split(found)}
    return tuple(sorted(named | {"fairlane"}))


def _local(requirement: str) -> str:
    name, bracket, extras = requirement.partition("[")
    return f"fairlane{bracket}{extras} @ file://{wheel()}" if name == "fairlane" else requirement


def _uv(*args: str) -> None:
    environ = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    command = [str(UV), "--quiet", *args]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
