"""Cancelling, retrying, deleting, and the dead letters."""

import json

import pytest

from tests.cli.kit import Cli
from tests.cli.test_tasks import fail


def test_by_id(cli: Cli) -> None:
    one, two = cli.submit("work"), cli.submit("work")
    assert cli.ok("cancel", one) == "1 task cancelled.\n"
    result = cli("cancel", one, two, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "matched": 2,
        "next_cursor": None,
        "applied": 1,
        "results": [
            {"task_id": one, "applied": False, "previous_status": "cancelled"},
            {"task_id": two, "applied": True, "previous_status": "queued"},
        ],
    }
    assert f"Task {one} is cancelled and was not cancelled" in result.stderr
    assert cli.ok("replay", one, two, "--new-priority", "critical") == ("2 tasks replayed.\n")
    assert cli.json("status", one)["priority"] == "critical"
    refused = cli("delete", one)
    assert refused.exit_code == 1
    assert "completed, dead_letter" in refused.stderr
    cli.ok("cancel", one, two)
    assert cli.ok("delete", one, two) == "2 tasks deleted.\n"
    assert cli.json("list")["tasks"] == []


def test_by_filter_with_a_question(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        cli.submit("a")
    other = cli.submit("b")
    unasked = cli("cancel", "--type", "a")
    assert unasked.exit_code == 2
    assert "Cancel 3 tasks? Nobody is there to answer: add --yes." in unasked.stderr
    assert cli("cancel", "--type", "a", "--json").exit_code == 2

    monkeypatch.setattr("fairlane.cli.bulk_changes._is_interactive", lambda: True)
    declined = cli("cancel", "--type", "a", input="n\n")
    assert declined.exit_code == 1
    assert "Cancel 3 tasks? [y/N]" in declined.stderr
    assert "Nothing was changed." in declined.stderr
    assert cli.ok("cancel", "--type", "a", input="y\n") == "3 tasks cancelled.\n"
    assert cli.status(other) == "queued"


def test_all_of_them(cli: Cli) -> None:
    cli.ok("submit", "work", "--file", "-", input="{}\n" * 1100)
    all_of_them = {"matched": 1100, "applied": 1100, "next_cursor": None}
    assert cli.json("cancel", "--all", "--yes") == all_of_them
    assert cli.json("replay", "--all", "--yes") == all_of_them
    assert cli.json("cancel", "--status", "queued", "--yes")["applied"] == 1100
    assert cli.json("delete", "--status", "cancelled", "--yes")["applied"] == 1100


def test_nothing_matches(ready: Cli) -> None:
    assert ready.ok("cancel", "--type", "none") == "0 tasks cancelled.\n"


def test_dead_letters(cli: Cli) -> None:
    ids = []
    for number in (1, 2):
        ids.append(cli.submit("work", f'{{"n": {number}}}', "--max-retries", "0"))
        fail(ids[-1], f"no luck with {number}")
    alive = cli.submit("work")
    cli.ok("cancel", alive)
    assert [task["task_id"] for task in cli.json("dlq", "list")["tasks"]] == ids[::-1]
    analysis = cli.json("dlq", "analysis")
    (group,) = analysis.pop("groups")
    assert analysis == {"analysed": 2, "complete": True}
    assert (group["type"], group["code"], group["shape"]) == ("work", "E", "no luck with <n>")
    assert (group["count"], group["retriable_share"]) == (2, 1.0)
    assert group["last_seen"].endswith("Z")
    assert "no luck with <n>" in cli.ok("dlq", "analysis")

    refused = cli("dlq", "replay", alive)
    assert refused.exit_code == 1
    assert cli.status(alive) == "cancelled"
    assert cli.json("dlq", "replay", ids[0])["applied"] == 1
    assert cli.json("status", ids[0])["retry_count"] == 0
    assert cli.json("dlq", "replay", "--all", "--yes", "--keep-retry-count")["applied"] == 1
    assert cli.json("status", ids[1])["retry_count"] == 1
    assert cli.json("dlq", "purge", "--all", "--yes")["matched"] == 0
    cli.ok("retry", alive)
    cli.ok("cancel", "--all", "--yes")
    assert "No dead letters" in cli("dlq", "analysis").stderr


def test_purging(cli: Cli) -> None:
    task_id = cli.submit("work", "--max-retries", "0")
    fail(task_id, "gone")
    assert cli("dlq", "purge", "--type", "work").exit_code == 2
    assert cli.ok("dlq", "purge", "--type", "work", "--yes") == "1 task deleted.\n"
    assert cli("status", task_id).exit_code == 1
