"""What `make` would do. `make up` needs Python; what only tests need is left to the others."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOR_TESTS = ["chromium", "nodejs", "prometheus", "systemd", "pgbouncer", "redis-tools", "gcc"]


def commands(folder: Path, *args: str) -> str:
    """The commands of a target in a fresh checkout."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    make = ["make", "--dry-run", "--no-print-directory", *args]
    return subprocess.run(make, cwd=folder, capture_output=True, text=True, check=True).stdout


def packages(printed: str) -> set[str]:
    """Debian packages that would be installed where they are missing."""
    found = re.findall(r"--no-install-recommends ([\w .+-]+?)(?:;| \)|$)", printed, re.MULTILINE)
    return {name for each in found for name in each.split()}


def test_up_installs_nothing_that_only_tests_need(tmp_path: Path) -> None:
    printed = commands(tmp_path, "up")
    assert packages(printed) == {"python3-venv"}
    assert "--editable '.[server]'" in printed
    assert "--group dev" not in printed
    assert printed.rstrip().endswith(" .venv/bin/fairlane up --demo")


def test_up_on_another_port(tmp_path: Path) -> None:
    assert commands(tmp_path, "up", "PORT=8001").endswith("fairlane up --demo --port 8001\n")


@pytest.mark.parametrize("target", ["test", "check", "docs", "test-full", "setup"])
def test_what_tests_need_is_installed_for_them(tmp_path: Path, target: str) -> None:
    printed = commands(tmp_path, target)
    assert packages(printed) >= set(FOR_TESTS)
    assert "--editable '.[all]' --group dev" in printed


def test_what_runs_does_not_have_to_be_installed_again(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv" / ".runs").touch()
    make = ["make", "--dry-run", "up"]
    done = subprocess.run(make, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "install" not in done.stdout
