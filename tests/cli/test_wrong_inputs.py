"""A sentence and an exit code for whatever cannot be; never a traceback, never a secret."""

from pathlib import Path

import pytest

from tests.cli.kit import Cli, write_app

ID = "01a1df28-3ee5-7a6e-81e1-a9bcb8dcc6c7"

EXIT_USAGE = [
    "nonsense",
    "list --nonsense",
    "list --status nonsense",
    "list --priority 11",
    "list --tag nothing",
    "list --since yesterday",
    "list --limit 0",
    "list --limit 1000000",
    "list --cursor nonsense",
    "list --type a/b",
    "stats --store nonsense",
    "stats --store mysql://localhost/x",
    "stats --store sqlite://host/x",
    "stats --store sqlite://[",
    "stats --store sqlite:///.",
    "migrate --store sqlite:///.",
    "stats --store postgresql://[",
    "stats --store redis://host/nonsense",
    "status",
    "status nonsense",
    f"status {ID.upper()}",
    "why nonsense",
    "submit",
    "submit a/b",
    "submit work {",
    "submit work [1]",
    "submit work @missing.json",
    "submit work {} --priority highest",
    "submit work {} --delay soon",
    "submit work {} --delay -1",
    "submit work {} --delay 1 --run-at 2030-01-01T00:00Z",
    "submit work {} --run-at 2030-01-01T00:00",
    "submit work {} --run-at nonsense",
    "submit work {} --timeout forever",
    "submit work {} --max-retries -1",
    "submit work {} --max-retries x",
    "submit work {} --tag x",
    "submit work {} --depends-on nonsense",
    f"submit work {{}} --depends-on {ID}",
    "submit work {} --timeout-wait 3",
    "submit --file missing.jsonl",
    "submit --file . ",
    "submit work {} --file missing.jsonl",
    "cancel",
    "cancel nonsense",
    f"cancel {ID} --type work",
    "replay",
    f"retry {ID} --new-priority 12",
    "delete",
    "delete --status queued --yes",
    "dlq nonsense",
    "dlq replay",
    "dlq purge",
    "pause --queue a --type b",
    "pause --queue a/b",
    "limit work --rate -1",
    "limit work --rate x",
    "limit --rate 1",
    "limit work --everything --rate 1",
    "limit --everything --concurrency 1",
    "limit work --breaker 5",
    "limit work --breaker 0,1,1",
    "limit work --breaker x,1,1",
    "limit work --breaker 1,1,1 --no-breaker",
    "drain a/b",
    "events --after nonsense",
    "audit --limit 0",
    "audit --cursor nonsense",
    "audit --cursor t01a1df283ee57a6e81e1a9bcb8dcc6c7",
    "token nonsense",
    "token create --name ci",
    "token create --scope read",
    "token create --name ci --scope nonsense",
    "token create --name ci --scope read --expires soon",
    "token create --name ci --scope read --expires 0",
    "token create --name ci --scope read --expires 99999d",
    "token revoke",
    "token rotate ci --overlap later",
    "schedule nonsense",
    "schedule show",
    "schedule list --limit 0",
    "schedule list --limit 101",
    "schedule list --cursor nonsense",
    "schedule preview",
    "schedule preview nonsense",
    "schedule preview @nonsense",
    "schedule preview @daily --tz Mars/Base",
    "schedule preview @daily --every 5m",
    "schedule preview @daily --offset 5m",
    "schedule preview --every 5m --tz UTC",
    "schedule preview --every 5m --offset 5m",
    "schedule preview --every 0",
    "schedule preview --every soon",
    "schedule preview @daily -n 0",
    "schedule put a --every 5m",
    "schedule put a --type work",
    "schedule put a/b --every 5m --type work",
    "schedule put a --every 5m --type a/b",
    "schedule put a --every 5m --type work --payload {",
    "schedule put a --every 5m --type work --payload [1]",
    "schedule put a --every 5m --type work --priority highest",
    "schedule put a --every 5m --type work --most 0",
    "schedule put a --every 5m --type work --count 0",
    "schedule put a --every 5m --type work --within 0",
    "schedule put a --every 5m --type work --missed nonsense",
    "schedule put a --every 5m --type work --overlap nonsense",
    "schedule put a --every 5m --type work --ends-at 2020-01-01T00:00Z",
    "schedule put a --every 5m --type work --starts-at 2030-01-01T00:00",
    "schedule pause a --until nonsense",
    "schedule resume a --missed nonsense",
    "schedule run a --at nonsense",
    "schedule backfill a",
    "schedule backfill a --since nonsense",
    "schedule delete a --if-version x",
    "worker --concurrency 0",
    "worker --concurrency 99999999",
    "worker --queues a/b",
    "worker --lease 0",
    "worker --lease nan",
    "worker --lease 1e9",
    "worker --lease soon",
    "worker --grace -1",
    "worker --tasks-per-child 0",
    "worker --name a/b",
    "worker --app shop",
    "worker --app shop:",
    "worker --app missing:app",
    "worker --app missing.module:app",
    "worker --app shop:missing",
    "worker --app shop:asyncio",
    "worker --app broken:app",
    "worker --app misspelt:app",
    "worker --app lacking:app",
    "worker --app empty:app",
]


@pytest.mark.parametrize("line", EXIT_USAGE)
def test_wrong_inputs(ready: Cli, line: str) -> None:
    write_app()
    Path("broken.py").write_text("1 / 0\n")
    Path("misspelt.py").write_text("def def\n")
    Path("lacking.py").write_text("import no_such_library\n")
    Path("empty.py").write_text("from fairlane.client.app import Fairlane\napp = Fairlane()\n")
    result = ready(*line.split())
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.splitlines()
    assert "Traceback" not in result.output
    assert sentence.startswith("Error: ")
    assert result.stdout == ""


def test_no_built_in_handlers(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.cli.apps.BUILT_IN", "fairlane.no_such_handlers")
    result = cli("worker")
    assert result.exit_code == 2
    assert "--app module:app" in result.stderr


def test_an_app_that_breaks_is_located(cli: Cli) -> None:
    Path("broken_here.py").write_text("\n1 / 0\n")
    result = cli("worker", "--app", "broken_here:app")
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "broken_here.py, line 2" in result.stderr


@pytest.mark.parametrize("command", ["list", "stats", "top", "workers", "events", "doctor"])
def test_looking_leaves_nothing_behind(cli: Cli, command: str) -> None:
    result = cli(command)
    assert result.exit_code == 1
    assert "fairlane migrate" in result.output
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:hunter2@127.0.0.1:1/x",
        "redis://:hunter2@127.0.0.1:1/0",
        "sqlite://someone:hunter2@host/x",
        "nonsense://someone:hunter2@host/x",
        "redis://127.0.0.1:1/0?password=hunter2",
        "redis://someone:hunter2@127.0.0.1:port/0",
    ],
)
@pytest.mark.parametrize("command", ["doctor", "top"])
def test_passwords_are_never_shown(
    cli: Cli, url: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.cli.commands.doctor.PATIENCE", 0.1)
    monkeypatch.setattr("fairlane.cli.commands.top.PATIENCE", 0.1)
    result = cli(command, "--store", url, env={"FAIRLANE_DEBUG": "1"})
    assert result.exit_code in {1, 2}
    assert "hunter2" not in result.output
    assert result.output


def test_the_unforeseen_is_a_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("\x1b[31mred")

    monkeypatch.setattr("fairlane.cli.commands.workers.open_store", broken)
    result = cli("workers")
    assert result.exit_code == 1
    assert "RuntimeError: \\x1b[31mred." in result.stderr
    assert "Traceback" not in result.output
    assert "Traceback" in cli("workers", env={"FAIRLANE_DEBUG": "1"}).stderr


def test_what_the_store_refuses(cli: Cli) -> None:
    Path("fairlane.db").write_text("This is no database at all. " * 100)
    result = cli("stats")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert cli("doctor").exit_code == 1
