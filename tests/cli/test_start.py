"""Commands are imported when they are asked for, and the overview tells the truth about them."""

import subprocess
import sys

import click
import pytest

from fairlane import __version__
from fairlane.cli.main import ALIASES, ENTRIES, fairlane
from tests.cli.kit import Cli


def test_help_needs_little() -> None:
    code = (
        "import sys; from fairlane.cli.main import fairlane\n"
        "try: fairlane.main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'rich', 'psycopg', 'asyncpg', 'redis', 'uvloop', 'fairlane.worker'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    assert "Run tasks until stopped." in done.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_the_overview_agrees_with_the_command(name: str) -> None:
    command = fairlane.get_command(click.Context(fairlane), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(200) == ENTRIES[name].help


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_the_same_command(alias: str, name: str) -> None:
    context = click.Context(fairlane)
    assert fairlane.get_command(context, alias) is fairlane.get_command(context, name)


DEEPER = [
    *(f"dlq {name}" for name in ("list", "analysis", "replay", "purge")),
    *(f"token {name}" for name in ("create", "list", "revoke", "rotate")),
]


@pytest.mark.parametrize("name", [*ENTRIES, *DEEPER])
def test_help_of_every_command(cli: Cli, name: str) -> None:
    assert cli.ok(*name.split(), "--help").startswith(f"Usage: fairlane {name}")


def test_version(cli: Cli) -> None:
    assert cli.ok("--version") == f"fairlane {__version__}\n"
