"""Schedules on the command line: on a store of one's own, and on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairlane import engines
from fairlane.core.definitions import Definition
from fairlane.core.recurrence import every
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from tests.cli.kit import Cli
from tests.fixtures.remote import remote

SINCE = ("--since", "2026-01-01T00:00Z", "--until", "2026-01-02T00:00Z")


@pytest.fixture(params=["file", "server"])
def at(
    request: pytest.FixtureRequest, ready: Cli, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    """The command line, whose store is a file, or a server over it."""
    with ExitStack() as stack:
        if request.param == "server":
            backend = engines.open(f"sqlite:///{Path.cwd() / 'fairlane.db'}")
            stack.callback(backend.driver.close)
            monkeypatch.setenv("FAIRLANE_STORE", stack.enter_context(remote(backend)))
        yield ready


def audited(cli: Cli) -> list[tuple[str, str]]:
    """What was done with which schedule, the oldest first."""
    entries = cli.json("audit", "--store", "sqlite:///fairlane.db")["entries"]
    return [(each["action"], each["subject"]) for each in reversed(entries)]


def put(cli: Cli, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = cli.json(
        *("schedule", "put", "nightly", "--cron", "30 2 * * *", "--tz", "Europe/Berlin"),
        *("--type", "echo", "--payload", '{"a": 1}', *more),
    )
    return found


def test_a_schedule_goes_its_way(at: Cli) -> None:
    first = put(at, "--note", "why", "--queue", "mail", "--missed", "all", "--within", "2d")
    assert (first["in_words"], first["version"], first["note"]) == (
        "At 02:30 every day, Europe/Berlin",
        *(1, "why"),
    )
    assert (first["task"]["queue"], first["missed"], first["within_seconds"]) == (
        *("mail", "all"),
        172_800.0,
    )
    assert put(at, "--note", "why", "--queue", "mail", "--missed", "all", "--within", "2d") == first
    assert at.json("schedule", "show", "nightly") == first
    paused = at.json("schedule", "pause", "nightly", "--note", "migration")
    assert (paused["state"], paused["pause"]["note"]) == ("paused", "migration")
    assert at.json("schedule", "resume", "nightly", "--missed", "once")["state"] == "active"
    task_id = at.ok("schedule", "run", "nightly", "--at", "2026-01-31T12:00Z").strip()
    task = at.json("status", task_id)
    assert (task["schedule_id"], task["scheduled_for"]) == (
        "nightly",
        "2026-01-31T12:00:00.000000Z",
    )
    assert [each["task_id"] for each in at.json("list", "--schedule", "nightly")["tasks"]] == [
        task_id
    ]
    assert at.json("list", "--schedule", "other")["tasks"] == []
    (listed,) = at.json("schedule", "list")["schedules"]
    assert listed["runs"][0]["task_id"] == task_id
    assert at.ok("schedule", "delete", "nightly") == "Schedule nightly is deleted.\n"
    assert at.json("schedule", "list") == {"schedules": [], "next_cursor": None}
    verbs = ["put", "put", "pause", "resume", "run", "drop"]
    assert audited(at) == [(f"schedule.{verb}", "nightly") for verb in verbs]


def test_backfilling_asks_first(at: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    put(at)
    command = ("schedule", "backfill", "nightly", *SINCE)
    refused = at(*command)
    assert refused.exit_code == 2
    assert "Submit the tasks of 1 tick?" in refused.stderr
    monkeypatch.setattr("fairlane.cli.bulk_changes._is_interactive", lambda: True)
    declined = at(*command, input="n\n")
    assert (declined.exit_code, declined.stdout) == (1, "")
    assert at.json("list")["tasks"] == []
    (task_id,) = at.ok(*command, input="y\n").split()
    assert at.json("status", task_id)["scheduled_for"] == "2026-01-01T01:30:00.000000Z"
    many = ("schedule", "backfill", "nightly", "--since", "2026-01-01T00:00Z")
    done = at.json(*many, "--until", "2026-01-08T00:00Z", "--overlap", "allow", "--yes")
    assert done["count"] == len(done["task_ids"]) == 7
    none = ("schedule", "backfill", "nightly", "--since", "2026-01-01T02:00Z")
    assert at.json(*none, "--until", "2026-01-01T03:00Z") == {"count": 0, "task_ids": []}
    assert audited(at)[1:] == [("schedule.backfill", "nightly")] * 2
    too_many = at("schedule", "backfill", "nightly", "--since", "2020-01-01T00:00Z", "--yes")
    assert too_many.exit_code == 2
    assert "More than 1,000 ticks" in too_many.stderr


def test_versions_are_compared(at: Cli) -> None:
    put(at, "--if-version", "0")
    for command in (
        ("put", "nightly", "--every", "5m", "--type", "echo", "--if-version", "0"),
        ("delete", "nightly", "--if-version", "2"),
    ):
        stale = at("schedule", *command)
        assert stale.exit_code == 1
        assert "has version 1" in stale.stderr
    assert at.json("schedule", "put", "nightly", "--every", "5m", "--type", "echo")["version"] == 2
    assert at.json("schedule", "delete", "nightly", "--if-version", "2") == {"deleted": "nightly"}


@pytest.mark.parametrize(
    "words",
    ["show", "pause", "resume", "run", "delete", "backfill --since 2026-01-01T00:00Z --yes"],
)
def test_one_that_is_not_there(at: Cli, words: str) -> None:
    verb, *options = words.split()
    for schedule_id in ("nobody", "a/b", "#ticks"):
        result = at("schedule", verb, schedule_id, *options)
        assert result.exit_code == 1
        assert f"There is no schedule '{schedule_id}'" in result.stderr


def test_what_a_worker_has_published_counts(at: Cli) -> None:
    backend = engines.open(f"sqlite:///{Path.cwd() / 'fairlane.db'}")
    schema = {"type": "object", "required": ["day"], "properties": {"day": {}}}
    known = Definition(type="report", queue="slow", unique=True, parameters=schema)
    backend.run_sync(backend.ops.publish([known]))
    backend.driver.close()
    command = ("schedule", "put", "nightly", "--cron", "@daily", "--type", "report")
    assert at("schedule", "put", "nightly2", *command[3:], "--payload", '{"day": 1}').stderr == ""
    refused = at(*command)
    assert (refused.exit_code, "`day` is missing" in refused.stderr) == (2, True)
    assert at.json(*command, "--payload", '{"day": 1}')["task"]["queue"] == "slow"
    assert at.json(*command, "--as-is")["task"]["queue"] == "default"


def test_a_type_that_nobody_handles(at: Cli) -> None:
    command = ("schedule", "put", "nightly", "--every", "5m", "--type", "webhok")
    other = at(*command)
    assert (other.exit_code, other.stdout) == (2, "")
    assert "Did you mean webhook?" in other.stderr
    assert "--allow-unknown-type" in other.stderr
    assert at("schedule", "show", "nightly").exit_code == 1
    assert at.json(*command, "--allow-unknown-type")["task"]["task_type"] == "webhok"


def test_people_read_words(ready: Cli) -> None:
    assert "No schedules" in ready("schedule", "list").stderr
    said = ready.ok(
        "schedule", "put", "refresh", "--every", "5m", "--type", "webhook", "--count", "9"
    )
    assert said.startswith("refresh: Every 5 minutes. Its next tick is in ")
    ready.ok(*("schedule", "put", "nightly", "--cron", "30 2 * * *", "--type", "echo"))
    head, *lines = ready.ok("schedule", "list").splitlines()
    assert head.split() == [
        "schedule",
        "state",
        "when",
        "type",
        "next",
        "last",
        "fired",
        "skipped",
        "missed",
    ]
    assert {line.split()[0] for line in lines} == {"refresh", "nightly"}
    ready.ok("schedule", "run", "refresh")
    shown = ready.ok("schedule", "show", "refresh")
    assert "when          Every 5 minutes\n" in shown
    assert "count         9 of 9 ticks are left\n" in shown
    assert "last 1 of 1 runs" in shown
    assert "manual" in shown
    assert "next ticks" in shown
    assert ready.ok("schedule", "pause", "refresh") == "Schedule refresh is paused.\n"
    assert "until somebody resumes it" in ready.ok("schedule", "show", "refresh")
    assert ready.ok("schedule", "resume", "refresh") == "Schedule refresh is resumed.\n"


def test_a_preview_needs_no_store(cli: Cli) -> None:
    rule = ("schedule", "preview", "30 2 * * *", "--tz", "Europe/Berlin")
    words, head, *ticks = cli.ok(*rule, "-n", "3").splitlines()
    assert (words, head.split()) == ("At 02:30 every day, Europe/Berlin", ["at", "local"])
    assert len(ticks) == 3
    assert all(" 02:30:00+0" in tick for tick in ticks)
    year = cli.json(*rule[:-2], "--tz", "Europe/Berlin", "-n", "100")
    assert (year["in_words"], len(year["ticks"])) == (words, 100)
    assert len(cli.json("schedule", "preview", "--every", "90", "--offset", "5")["ticks"]) == 5
    assert list(Path().iterdir()) == []


def test_payloads_from_files(ready: Cli) -> None:
    Path("day.json").write_text('{"day": "é"}')
    at_file = ("schedule", "put", "a", "--every", "1h", "--type", "echo", "--payload")
    assert ready.json(*at_file, "@day.json")["task"]["parameters"] == {"day": "é"}
    assert ready.json(*at_file, "-", input='{"b": 1}')["task"]["parameters"] == {"b": 1}
    large = json.dumps({"a": "x" * 300_000})
    refused = ready(*at_file, "-", input=large)
    assert (refused.exit_code, "at most 262,144 are accepted" in refused.stderr) == (2, True)


def test_a_store_without_a_schema_gets_one(cli: Cli) -> None:
    assert cli("schedule", "list").exit_code == 1
    assert list(Path().iterdir()) == []
    put(cli)
    assert len(cli.json("schedule", "list")["schedules"]) == 1


def test_what_code_declares_is_changed_there(at: Cli) -> None:
    backend = engines.open(f"sqlite:///{Path.cwd() / 'fairlane.db'}")
    schedule = new_schedule("nightly", every(60), new_task("report"))
    backend.run_sync(backend.ops.put_schedules([schedule], owner="shop"))
    backend.driver.close()
    refused = at("schedule", "put", "nightly", "--every", "5m", "--type", "report")
    assert (refused.exit_code, "the code of shop" in refused.stderr) == (1, True)
    assert at.json("schedule", "show", "nightly")["owner"] == "shop"
    assert at.json("schedule", "pause", "nightly")["state"] == "paused"
