from pathlib import Path

import pytest

from tests.cli.kit import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in an empty folder, without settings of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "APP", "QUEUES", "CAPABILITIES", "CONCURRENCY", "PROCESSES", "DEBUG"):
        monkeypatch.delenv(f"FAIRLANE_{name}", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return Cli()


@pytest.fixture
def ready(cli: Cli) -> Cli:
    """The same with a store."""
    cli.ok("migrate")
    return cli
