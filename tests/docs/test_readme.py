"""What the README shows, works as printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "fairlane"]


def test_the_first_screen(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    (session,) = re.findall(r"^```\n(\$ fairlane worker.*?)^```", readme, re.DOTALL | re.MULTILINE)
    (tmp_path / "shop.py").write_text(example)
    run, submit, printed = session.splitlines()
    worker = subprocess.Popen(
        COMMAND + shlex.split(run.removeprefix("$ fairlane").removesuffix("&")),
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        waited = subprocess.run(
            COMMAND + shlex.split(submit.removeprefix("$ fairlane")),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (waited.stdout.strip(), waited.returncode) == (printed, 0), waited.stderr
        direct = subprocess.run(
            [sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert re.fullmatch(r"[0-9a-f-]{36}\n", direct.stdout), direct.stderr
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
