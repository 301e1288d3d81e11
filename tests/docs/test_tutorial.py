"""The tutorial's Python is one program, and does what the page says."""

import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 4
    program = "\n\n".join(blocks)
    (promised,) = re.findall(r"print\(.*\)  # (.*)", program)
    (tmp_path / "shop.py").write_text(program)
    run = subprocess.run(
        [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.stdout.strip(), run.stderr, run.returncode) == (promised, "", 0)
