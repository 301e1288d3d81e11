from pathlib import Path

import pytest

from fairlane.cli.settings import Settings
from tests.cli.kit import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in an empty folder, without settings of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in (*Settings._fields, "debug"):
        monkeypatch.delenv(f"FAIRLANE_{name.upper()}", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return Cli()


@pytest.fixture
def ready(cli: Cli) -> Cli:
    """The same with a store."""
    cli.ok("migrate")
    return cli
