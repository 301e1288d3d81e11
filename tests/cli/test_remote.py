"""Commands whose store is a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from fairlane import engines
from fairlane.core.tokens import Scope, issued
from tests.cli.kit import Cli
from tests.fixtures.remote import remote


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    backend = engines.open(f"sqlite:///{tmp_path / 'served.db'}")
    backend.run_sync(backend.ops.migrate())
    with remote(backend) as url:
        yield url
    backend.driver.close()


def test_commands_work_on_a_server(server: str) -> None:
    cli, at = Cli(), ("--store", server)
    first = cli.submit("greet", '{"name": "Ada"}', *at)
    second = cli.submit("greet", *at)
    assert cli.json("status", first, *at)["parameters"] == {"name": "Ada"}
    assert len(cli.json("list", *at)["tasks"]) == 2
    assert cli.ok("why", first, *at)
    cli.ok("cancel", first, *at)
    assert cli.json("status", first, *at)["status"] == "cancelled"
    cli.ok("cancel", "--type", "greet", "--yes", *at)
    assert cli.json("status", second, *at)["status"] == "cancelled"
    cli.ok("replay", first, *at)
    cli.ok("pause", "--queue", "default", *at)
    cli.ok("limit", "greet", "--rate", "5", *at)
    assert cli.json("stats", *at)["by_status"]["queued"] == 1
    assert cli.json("workers", *at)["workers"] == []


def test_commands_that_look_into_the_books(server: str) -> None:
    cli, at = Cli(), ("--store", server)
    first = cli.submit("greet", *at)
    cli.ok("cancel", first, *at)
    told = [json.loads(line) for line in cli.ok("events", "--json", *at).splitlines()]
    assert [(each["type"], each["data"]["task_id"]) for each in told] == [
        ("task.submitted", first),
        ("task.cancelled", first),
    ]
    rest = cli.ok("events", "--json", "--after", told[0]["cursor"], *at)
    assert json.loads(rest) == told[1]
    (entry,) = cli.json("audit", *at)["entries"]
    assert (entry["action"], entry["subject"]) == ("task.cancel", first)
    with urlopen(f"{server}/api/v1/events?cursor={told[0]['cursor']}") as page:
        assert json.load(page)["events"] == told[1:]
    with urlopen(f"{server}/api/v1/audit") as page:
        assert json.load(page) == cli.json("audit", *at)
    top = cli.json("top", *at)
    assert (top["stats"]["by_status"]["cancelled"], top["workers"]) == (1, [])
    well = cli.json("doctor", *at)
    assert {each["check"] for each in well["checks"]} >= {"store", "api", "clock", "tasks"}


def test_a_dead_letter_is_replayed_by_its_id(server: str) -> None:
    cli, at = Cli(), ("--store", server)
    alive = cli.submit("greet", *at)
    refused = cli("dlq", "replay", alive, *at)
    assert refused.exit_code == 1
    assert "for tasks that are dead_letter." in refused.stderr


def test_what_needs_the_store_says_so(server: str) -> None:
    token = ("token", "create", "--name", "ci", "--scope", "read")
    for command in (token, ("token", "list"), ("token", "revoke", "ci"), ("migrate",)):
        result = Cli()(*command, "--store", server)
        assert result.exit_code == 1
        assert "own URL" in result.stderr
    result = Cli()("server", "--store", server, "--port", "0")
    assert result.exit_code == 2
    assert "store of its own" in result.stderr


def test_the_token_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = engines.open(f"sqlite:///{tmp_path / 'served.db'}")
    backend.run_sync(backend.ops.migrate())
    new, secret = issued("cli", [Scope.READ])
    backend.run_sync(backend.ops.put_token(new))
    (tmp_path / "token").write_text(secret + "\n")
    with remote(backend) as url:
        refused = Cli()("list", "--store", url)
        assert refused.exit_code == 1
        assert "FAIRLANE_TOKEN" in refused.stderr
        monkeypatch.setenv("FAIRLANE_TOKEN_FILE", str(tmp_path / "token"))
        assert Cli().json("list", "--store", url)["tasks"] == []
        forbidden = Cli()("pause", "--queue", "a", "--store", url)
        assert forbidden.exit_code == 1
        assert "scope admin" in forbidden.stderr
        assert Cli()("audit", "--store", url).exit_code == 1
        assert Cli().json("top", "--store", url)["workers"] == []
        monkeypatch.setenv("FAIRLANE_TOKEN", secret)
        both = Cli()("list", "--store", url)
        assert both.exit_code == 2
        assert secret not in both.stderr
        monkeypatch.delenv("FAIRLANE_TOKEN_FILE")
        assert Cli().json("list", "--store", url)["tasks"] == []
    backend.driver.close()
