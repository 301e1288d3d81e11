"""What the README shows, works as printed."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (promised,) = re.findall(r"print\(.*\)  # (.*)", example)
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.stdout.strip(), run.stderr) == (promised, "")
