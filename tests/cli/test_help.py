"""Help where nothing was asked for, completion in a shell, and a question before a large change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fairlane.cli import bulk_changes
from tests.cli.kit import Cli, command


@pytest.mark.parametrize("name", ["", "dlq", "schedule", "definition", "token", "workflow"])
def test_a_group_without_a_command_prints_its_help(cli: Cli, name: str) -> None:
    asked = cli.ok(*name.split(), "--help")
    result = cli(*name.split())
    assert (result.stdout, result.stderr, result.exit_code) == ("", asked, 2)


def completed(*words: str, place: int) -> tuple[list[str], str]:
    """What bash would offer for the word at a place, and what was imported for that."""
    code = (
        "import sys\nfrom fairlane.cli.main import fairlane\n"
        "try: fairlane.main([], prog_name='fairlane')\n"
        "finally: sys.stderr.write(' '.join(sys.modules))"
    )
    environ = {
        **os.environ,
        "_FAIRLANE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(place),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(
    ("words", "place", "offered"),
    [
        (("fairlane", "re"), 1, ["replay", "resume"]),
        (("fairlane", "--ver"), 1, ["--version"]),
        (("fairlane", "list", "--st"), 2, ["--status", "--store"]),
        (("fairlane", "dlq", "p"), 2, ["purge"]),
        (("fairlane", "token", "create", "--sc"), 3, ["--scope"]),
    ],
)
def test_completion(words: tuple[str, ...], place: int, offered: list[str]) -> None:
    assert completed(*words, place=place)[0] == offered


def test_names_are_completed_without_the_commands() -> None:
    names, imported = completed("fairlane", "", place=1)
    assert len(names) > 20
    assert "fairlane.cli.commands" not in imported


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(shell: str) -> None:
    if shell == "bash":  # click asks bash for its version
        assert subprocess.run(["bash", "--version"], capture_output=True, check=False).stdout
    done = subprocess.run(
        command(),
        env={**os.environ, "_FAIRLANE_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "_FAIRLANE_COMPLETE" in done.stdout, done.stderr


def test_pausing_everything_takes_a_yes(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ready("pause")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "Error: Pause everything (--queue or --type pauses one queue or type)? Nobody is there to "
        "answer: add --yes.\n"
    )
    monkeypatch.setattr(bulk_changes, "_is_interactive", lambda: True)
    no = ready("pause", input="n\n")
    assert (no.exit_code, "Nothing was changed." in no.stderr) == (1, True)
    assert ready.json("limit")["paused"] is False
    assert ready("pause", "--json", input="y\n").exit_code == 2
    assert "Everything is paused" in ready("pause", input="y\n").stdout
    assert ready.json("limit")["paused"] is True
