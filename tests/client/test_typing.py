"""What type checkers make of an application: wrong arguments are errors, results have types."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).with_name("typed.py")
ROOT = EXAMPLE.parents[2]
EXIT_USAGE = {
    number
    for number, line in enumerate(EXAMPLE.read_text().splitlines(), 1)
    if line.endswith("# wrong")
}


def errors(*command: str) -> set[int]:
    """The lines of the example that a checker finds at fault."""
    run = subprocess.run(
        [sys.executable, "-m", *command, str(EXAMPLE)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"typed\.py:(\d+)(?::\d+)?(?: -|:) error:", run.stdout)
    assert found, run.stdout + run.stderr
    return set(map(int, found))


def test_mypy(tmp_path: Path) -> None:
    settings = ("--config-file", "/dev/null", "--strict", "--cache-dir", str(tmp_path))
    assert errors("mypy", *settings, "--follow-imports=silent") == EXIT_USAGE


def test_pyright() -> None:
    assert errors("basedpyright", "--level", "error", "--pythonpath", sys.executable) == EXIT_USAGE
