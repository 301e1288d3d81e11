"""Commands whose store is a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
    cli.ok("retry", first, *at)
    cli.ok("pause", "--queue", "default", *at)
    cli.ok("limit", "greet", "--rate", "5", *at)
    assert cli.json("stats", *at)["by_status"]["queued"] == 1
    assert cli.json("workers", *at)["workers"] == []


def test_what_needs_the_store_says_so(server: str) -> None:
    for command in (("token", "list"), ("events",), ("audit",)):
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
        monkeypatch.setenv("FAIRLANE_TOKEN", secret)
        both = Cli()("list", "--store", url)
        assert both.exit_code == 2
        assert secret not in both.stderr
        monkeypatch.delenv("FAIRLANE_TOKEN_FILE")
        assert Cli().json("list", "--store", url)["tasks"] == []
    backend.driver.close()
