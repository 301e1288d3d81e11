"""Keys from settings: never on the command line, never in what is printed."""

import json
import sqlite3
from pathlib import Path

import pytest

from fairlane.core.sealing import Key, keys_of
from tests.cli.kit import Cli, start, write_app

KEY = Key("k1", b"1" * 32)


def examined(cli: Cli) -> dict[str, str]:
    """What the doctor says, well or not."""
    checks = json.loads(cli("doctor", "--json").stdout)["checks"]
    return {each["check"]: each["message"] for each in checks}


def test_a_key_is_made_and_used(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cli.ok("key").strip()
    assert len(keys_of(key)) == 1
    cli.ok("migrate")
    monkeypatch.setenv("FAIRLANE_ENCRYPTION_KEYS", key)
    task_id = cli.submit("greet", '{"name": "Ada Lovelace"}')
    assert cli.json("status", task_id)["parameters"] == {"name": "Ada Lovelace"}
    with sqlite3.connect("fairlane.db") as store:
        assert b"Lovelace" not in b"".join(p for (p,) in store.execute("SELECT payload FROM tasks"))
    store.close()
    checks = examined(cli)
    assert checks["encryption"].endswith(f"are sealed with the key {key.partition(':')[0]}.")
    monkeypatch.delenv("FAIRLANE_ENCRYPTION_KEYS")
    assert "requires encryption, and there are no keys here" in examined(cli)["encryption"]
    assert cli.json("status", task_id)["parameters"].keys() == {"$sealed"}
    assert cli.json("list")["tasks"][0]["parameters"].keys() == {"$sealed"}
    assert task_id in cli.ok("status", task_id)


def test_without_keys_nothing_is_said_of_encryption(cli: Cli) -> None:
    cli.ok("migrate")
    cli.submit("greet", '{"name": "Ada"}')
    assert "encryption" not in examined(cli)
    assert cli.json("encryption") == {"encryption": "undecided"}


def test_a_store_that_was_used_with_keys_takes_no_plain_text(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("migrate")
    cli.submit("greet", '{"name": "Eve"}')  # before there were keys
    monkeypatch.setenv("FAIRLANE_ENCRYPTION_KEYS", KEY.text)
    cli.submit("greet", '{"name": "Ada"}')
    assert "1 of the newest 2 tasks" in examined(cli)["encryption"]
    monkeypatch.delenv("FAIRLANE_ENCRYPTION_KEYS")
    for command in (["submit", "greet", "{}"], ["worker"]):
        refused = cli(*command)
        assert refused.exit_code == 1, refused.output
        assert "encryption_keys" in refused.stderr
    assert cli.ok("encryption").startswith("required: ")
    assert cli.ok("encryption", "optional").startswith("optional: ")
    cli.submit("greet", "{}")
    assert cli.json("audit")["entries"][0]["action"] == "settings.encryption"

    monkeypatch.setenv("FAIRLANE_ENCRYPTION_KEYS", KEY.text)
    cli.submit("greet", "{}")  # keys do not undo what an operator has said
    assert cli.json("encryption") == {"encryption": "optional"}
    assert cli.json("encryption", "required") == {"encryption": "required"}


def test_an_operator_permits_plain_text_before_there_are_keys(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("migrate")
    monkeypatch.setenv("FAIRLANE_ENCRYPTION_KEYS", KEY.text)
    cli.ok("encryption", "optional")
    cli.submit("greet", "{}")
    assert [entry["detail"] for entry in cli.json("audit")["entries"]] == [
        {"encryption": "optional"}
    ]
    assert "run `fairlane encryption required`" in examined(cli)["encryption"]


def test_a_worker_s_application_gets_the_keys_of_a_file(cli: Cli) -> None:
    write_app()
    Path("keys").write_text(f"{KEY.text}\n{Key('k0', b'0' * 32).text}\n")
    Path("fairlane.toml").write_text('encryption_key_file = "keys"\napp = "shop:app"\n')
    cli.ok("migrate")
    worker = start("worker")
    try:
        waited = cli.ok("submit", "greet", '{"name": "Ada"}', "--wait")
        assert json.loads(waited) == {"hello": "Ada"}
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    Path("fairlane.toml").write_text("")
    (task,) = cli.json("list")["tasks"]
    assert task["result"]["$sealed"].startswith("k1.")


@pytest.mark.parametrize(
    "settings",
    [
        'encryption_keys = "SECRET"',
        'encryption_keys = ["a:SECRET"]',
        "encryption_keys = 7",
        "encryption_keys = [7]",
        'encryption_key_file = "missing"',
        'encryption_key_file = "empty"',
        'encryption_key_file = "wrong"',
        f'encryption_keys = "{KEY.text}"\nencryption_key_file = "right"',
    ],
)
@pytest.mark.parametrize("command", ["list", "worker"])
def test_wrong_keys_are_told_without_being_shown(cli: Cli, settings: str, command: str) -> None:
    cli.ok("migrate")
    Path("empty").write_text("\n")
    Path("wrong").write_text("SECRET\n")
    Path("right").write_text(KEY.text)
    Path("fairlane.toml").write_text(settings)
    result = cli(command)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "SECRET" not in result.output
    assert KEY.text not in result.output
