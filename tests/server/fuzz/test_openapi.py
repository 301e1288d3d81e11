"""schemathesis holds the server to its own description: all checks, all phases."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.serving import ROOT, ServerProcess

FULL = os.environ.get("FAIRLANE_TESTS") == "full"
EXAMPLES = 50 if FULL else 2
"""Of each operation; in the other phases there are as many as it takes."""
CONFIG = Path(__file__).with_name("schemathesis.toml")


@pytest.mark.timeout(1_800 if FULL else 110)
def test_the_server_does_what_its_description_says(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    with ServerProcess(store, tmp_path) as server:
        # With a token, so that what is done without one is refused.
        secret = server.token("submit", "read", "admin", "worker")
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG)),
                *("run", f"{server.address}/openapi.json", "--checks", "all"),
                *("--max-examples", str(EXAMPLES), "--request-timeout", "10"),
                *("--header", f"Authorization: Bearer {secret}", "--no-color"),
                *([] if FULL else ["--generation-deterministic"]),
            ],
            cwd=tmp_path,  # it leaves things behind
            env={**os.environ, "PYTHONPATH": str(ROOT)},  # of the hooks
            check=False,
            capture_output=True,
            text=True,
        )
    sys.stdout.write(ended.stdout)
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr
    assert "Traceback" not in server.said
