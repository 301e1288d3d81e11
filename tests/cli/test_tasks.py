"""Looking at tasks."""

import json
from datetime import UTC, datetime

from fairlane.client.app import Fairlane
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from tests.cli.kit import Cli, in_store
from tests.fixtures.stores import World


def fail(task_id: str, message: str, *, times: int = 1) -> None:
    """Let a task run, and fail."""

    async def use(app: Fairlane) -> None:
        world = World(app.backend, app.url, {})
        await app.stats()
        worker = await world.worker()
        for _ in range(times):
            task = await world.claim_one(worker)
            assert task.task_id == task_id
            error = TaskError.of(message, code="E", traceback="Traceback:\n\tin \x1b[1mhere")
            await world.settle(task, Failed(error))

    in_store(use)


def test_lists_go_on_where_they_ended(cli: Cli) -> None:
    ids = [cli.submit("work", f'{{"n": {n}}}') for n in range(5)][::-1]
    first = cli.json("list", "--limit", "2")
    rest = cli.json("list", "--cursor", first["next_cursor"])
    assert [task["task_id"] for task in first["tasks"] + rest["tasks"]] == ids
    assert rest["next_cursor"] is None
    assert first["tasks"][0] == cli.json("status", ids[0])
    shown = cli("list", "--limit", "2")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["task", *ids[:2]]
    assert f"--cursor {first['next_cursor']}" in shown.stderr


def test_filters(cli: Cli) -> None:
    one = cli.submit("a", "--queue", "q", "--priority", "low", "--tag", "x=y")
    two = cli.submit("b", "--delay", "1h")

    def listed(*options: str) -> list[str]:
        return [task["task_id"] for task in cli.json("list", *options)["tasks"]]

    assert listed("--type", "a") == listed("--queue", "q") == listed("--priority", "2") == [one]
    assert listed("--tag", "x=y") == listed("--status", "queued") == [one]
    assert listed("--status", "scheduled") == listed("--priority", "medium") == [two]
    assert listed("--type", "a", "--type", "b", "--since", "1h") == [two, one]
    assert listed("--since", datetime.now(UTC).isoformat()) == listed("--until", "1h") == []
    assert "No tasks" in cli("list", "--until", "1h").stderr


def test_everything_about_a_task(cli: Cli) -> None:
    task_id = cli.submit("work", '{"text": "\\u001b[31m", "rtl": "\u202e"}', "--max-retries", "0")
    fail(task_id, "no\x1b[2J luck\nat all")
    text = cli.ok("status", task_id)
    assert "dead_letter" in text
    assert "E: no\\x1b[2J luck\\nat all (max_retries_exceeded)" in text
    assert "\\u001b[31m" in text
    assert "in \\x1b[1mhere" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    task = cli.json("status", task_id)
    assert task["error"] == {
        "message": "no\x1b[2J luck\nat all",
        "code": "E",
        "retriable": True,
        "reason": "max_retries_exceeded",
        "traceback": "Traceback:\n\tin \x1b[1mhere",
    }
    (attempt,) = task["attempts"]
    assert (attempt["number"], attempt["outcome"]) == (1, "failed")
    assert set(attempt) == {"number", "worker_id", "started_at", "ended_at", "outcome", "error"}


def test_json_is_harmless_and_exact(cli: Cli) -> None:
    text = "\x9b\u202e\x7f"
    result = cli.ok("status", cli.submit("work", json.dumps({"t": text})), "--json")
    assert not set(text) & set(result)
    assert json.loads(result)["parameters"] == {"t": text}


def test_exact_times(cli: Cli) -> None:
    task_id = cli.submit("work", "--run-at", "2090-01-31T12:00Z")
    assert "2090-01-31 12:00:00Z" in cli.ok("status", task_id, "--utc")
    assert "due        in " in cli.ok("status", task_id)


def test_why(cli: Cli) -> None:
    task_id = cli.submit("work")
    cli.ok("pause", "--type", "work")
    found = cli.json("why", task_id)
    assert set(found) == {"reasons"}
    assert [reason["code"] for reason in found["reasons"]] == ["paused", "no_worker", "position"]
    assert "The type work is paused." in cli.ok("why", task_id)
    cli.ok("cancel", task_id)
    assert cli.ok("why", task_id) == "The task does not wait: it is cancelled.\n"


def test_what_is_not_there(ready: Cli) -> None:
    task_id = "01a1df28-3ee5-7a6e-81e1-a9bcb8dcc6c7"
    for command in ("status", "why", "cancel", "replay", "delete"):
        result = ready(command, task_id)
        assert result.exit_code == 1
        assert f"There is no task {task_id}" in result.stderr


def test_events(cli: Cli) -> None:
    task_id = cli.submit("work", "--priority", "high")
    cli.ok("cancel", task_id)
    events = [json.loads(line) for line in cli.ok("events", "--json").splitlines()]
    assert [(event["type"], event["data"]["task_id"]) for event in events] == [
        ("task.submitted", task_id),
        ("task.cancelled", task_id),
    ]
    assert events[0]["data"]["type"] == "work"
    assert events[0]["data"]["priority"] == "high"
    assert events[0]["timestamp"].endswith("Z")
    later = cli.ok("events", "--json", "--after", events[0]["cursor"])
    assert [json.loads(line) for line in later.splitlines()] == events[1:]
    assert [line.split()[1] for line in cli.ok("events").splitlines()] == ["submit", "cancel"]
    assert len(cli.ok("events", "--limit", "1").splitlines()) == 1
