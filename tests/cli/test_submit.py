"""Submitting one task, or a file of them."""

import json
from pathlib import Path

import pytest

from fairlane.cli.commands import submit
from fairlane.client.app import Fairlane
from fairlane.core.why import NOBODY, Reason
from tests.cli.kit import Cli


def test_a_task_with_everything(cli: Cli) -> None:
    parent = cli.submit("parent")
    task_id = cli.submit(
        *("work", '{"n": 1, "text": "ü"}', "--priority", "high", "--queue", "q", "--delay", "1.5h"),
        *("--expires-at", "2090-01-01T00:00+02:00", "--key", "k", "--max-retries", "7"),
        *("--timeout", "2m", "--tag", "a=b", "--tag", "c=d=e", "--capability", "gpu"),
        *("--depends-on", parent, "--unique"),
    )
    task = cli.json("status", task_id)
    assert list(task) == [
        *("task_id", "task_type", "queue", "priority", "effective_priority", "status"),
        *("attempt", "retry_count", "max_retries", "timeout_seconds", "required_capabilities"),
        *("created_at", "run_at", "ready_at", "claimed_at", "started_at", "completed_at"),
        "updated_at",
        *("next_retry_at", "expires_at", "assigned_worker_id", "version", "error"),
        *("progress", "tags", "idempotency_key", "trace_id", "traceparent"),
        *("retry_policy", "returns", "depends_on", "on_parent_failure", "inputs"),
        *("workflow_id", "workflow", "schedule_id", "scheduled_for", "owner"),
        *("parameters", "result", "attempts"),
    ]
    told = {
        "task_id": task_id,
        "task_type": "work",
        "queue": "q",
        "parameters": {"n": 1, "text": "ü"},
        "priority": "high",
        "status": "scheduled",
        "attempt": 0,
        "max_retries": 7,
        "timeout_seconds": 120.0,
        "required_capabilities": ["gpu"],
        "expires_at": "2089-12-31T22:00:00.000000Z",
        "tags": {"a": "b", "c": "d=e"},
        "idempotency_key": "k",
        "depends_on": [parent],
        "result": None,
        "error": None,
        "attempts": [],
    }
    assert {name: task[name] for name in told} == told


def test_what_is_known_is_said(cli: Cli) -> None:
    first = cli.json("submit", "work", "--key", "k")
    assert first == {"task_id": first["task_id"], "status": "queued", "known": False}
    again = cli("submit", "work", "--key", "k", "--json")
    assert json.loads(again.stdout) == {**first, "known": True}
    assert "exists already" in again.stderr
    other = cli("submit", "work", '{"n": 1}', "--key", "k")
    assert other.exit_code == 1
    assert "idempotency key" in other.stderr


def test_priorities_without_a_name_are_numbers(cli: Cli) -> None:
    assert cli.json("status", cli.submit("work", "--priority", "7"))["priority"] == 7
    assert cli.json("status", cli.submit("work", "--priority", "normal"))["priority"] == "medium"


def test_no_timeout(cli: Cli) -> None:
    assert cli.json("status", cli.submit("work", "--timeout", "none"))["timeout_seconds"] is None


def test_payloads_from_elsewhere(cli: Cli) -> None:
    Path("day.json").write_text('{"from": "file"}')
    assert cli.json("status", cli.submit("work", "@day.json"))["parameters"] == {"from": "file"}
    piped = cli.ok("submit", "work", "-", input='{"from": "stdin"}').strip()
    assert cli.json("status", piped)["parameters"] == {"from": "stdin"}


def test_a_file(cli: Cli) -> None:
    lines = [
        {"type": "a", "payload": {"n": 1}, "priority": "low", "delay_seconds": 5},
        {"task_type": "b", "parameters": {"n": 2}, "priority": 3, "tags": {"x": "y"}},
        {"run_at": "2090-01-01T00:00:00Z"},
        {"idempotency_key": "k"},
        {"idempotency_key": "k"},
    ]
    Path("tasks.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    answer = cli.json("submit", "c", "--file", "tasks.jsonl", "--queue", "q", "--delay", "1h")
    assert answer == {"submitted": 4, "known": 1}
    tasks = cli.json("list")["tasks"][::-1]
    assert [(task["task_type"], task["priority"], task["parameters"]) for task in tasks] == [
        ("a", "low", {"n": 1}),
        ("b", 3, {"n": 2}),
        ("c", "medium", {}),
        ("c", "medium", {}),
    ]
    assert {task["queue"] for task in tasks} == {"q"}
    assert tasks[2]["run_at"] == "2090-01-01T00:00:00.000000Z"


def test_more_than_a_batch(cli: Cli) -> None:
    text = "".join(json.dumps({"payload": {"n": n}}) + "\n" for n in range(2500))
    assert cli.ok("submit", "work", "--file", "-", input=text) == "2,500 tasks submitted.\n"
    assert cli.json("stats")["by_status"]["queued"] == 2500


def test_bad_lines_are_named_and_nothing_is_submitted(ready: Cli) -> None:
    bad = ["{", '{"nonsense": 1}', '{"payload": [1]}', '{"priority": "x"}', '"text"', "\xff"]
    Path("tasks.jsonl").write_bytes(
        b"{}\n" * 2000 + "\n".join(bad).encode("latin-1") + b"\n{}\n" * 2
    )
    result = ready("submit", "work", "--file", "tasks.jsonl")
    assert result.exit_code == 2
    for number in range(2001, 2007):
        assert f"line {number:,}: " in result.stderr
    assert "nonsense" in result.stderr
    assert ready.json("list")["tasks"] == []


def test_a_file_of_nothing_but_bad_lines_is_not_listed_in_full(ready: Cli) -> None:
    Path("tasks.jsonl").write_text("{\n" * 30)
    result = ready("submit", "work", "--file", "tasks.jsonl")
    assert "line 10: " in result.stderr
    assert "line 11: " not in result.stderr
    assert "And 20 more." in result.stderr


def test_a_line_without_a_type(ready: Cli) -> None:
    Path("tasks.jsonl").write_text("{}\n")
    result = ready("submit", "--file", "tasks.jsonl")
    assert result.exit_code == 2
    assert "line 1: It names no type" in result.stderr


def test_a_batch_that_is_refused_says_how_far_it_got(ready: Cli) -> None:
    ready.submit("work", '{"other": 1}', "--key", "taken")
    Path("tasks.jsonl").write_text("{}\n" * 1000 + '{"idempotency_key": "taken"}\n')
    result = ready("submit", "work", "--file", "tasks.jsonl")
    assert result.exit_code == 1
    assert "1,000 tasks were submitted, those from task 1,001" in result.stderr


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file(cli: Cli, text: str) -> None:
    assert cli.ok("submit", "--file", "-", input=text) == "0 tasks submitted.\n"


def publish(cli: Cli) -> None:
    """Publish what the code says about `send`, as a worker does."""
    app = Fairlane("sqlite:///fairlane.db", synchronous="OFF")

    @app.task(queue="mail", priority="high", max_retries=7, timeout=30)
    def send(to: str, copies: int = 1) -> None: ...

    with app:
        app.run_sync(app.backend.ops.publish([send.definition()]))


def test_a_type_that_workers_have_published_has_its_own_defaults(cli: Cli) -> None:
    publish(cli)
    task = cli.json("status", cli.submit("send", '{"to": "a"}'))
    shown = ("queue", "priority", "max_retries", "timeout_seconds")
    assert [task[name] for name in shown] == ["mail", "high", 7, 30.0]
    task = cli.json(
        "status", cli.submit("send", '{"to": "a"}', "--queue", "q", "--timeout", "none")
    )
    assert [task[name] for name in shown] == ["q", "high", 7, None]
    task = cli.json("status", cli.submit("send", "{}", "--as-is"))
    assert [task[name] for name in shown] == ["default", "medium", 3, 600.0]


def test_arguments_that_do_not_fit_are_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    publish(cli)
    result = cli("submit", "send", '{"to": "a", "copies": "2"}')
    assert result.exit_code != 0
    assert "send: `copies` must be a whole number, not text." in result.stderr
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"type": "send", "payload": {"to": "a"}}\n{"type": "send"}\n')
    result = cli("submit", "--file", str(file))
    assert result.exit_code != 0
    assert "line 2: send: `to` is missing." in result.stderr
    assert cli.json("list")["tasks"] == []
    cli.ok("submit", "--file", str(file), "--as-is")
    assert len(cli.json("list")["tasks"]) == 2


def test_waiting_in_vain_says_why(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "REASON_SECONDS", 0.05)
    result = cli("submit", "greet", "--wait", "--timeout-wait", "1")
    first, last = result.stderr.splitlines()  # once, and not at every look
    assert first.startswith("Task ")
    assert first.endswith(f" waits. {NOBODY}")
    assert last.endswith(f"has not ended within 1 s: it goes on. {NOBODY}")
    assert (result.exit_code, result.stdout) == (1, "")


async def test_the_reason_is_printed_again_when_it_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "REASON_SECONDS", 0.0)
    looks: list[list[Reason] | None] = [
        None,
        [],
        [Reason("no_worker", "No worker is running.")],
        [Reason("no_worker", "No worker is running.")],
        [Reason("position", "About 9 tasks are ahead of it.")],
        [Reason("position", "About 8 tasks are ahead of it.")],
        [Reason("paused", "Everything is paused.")],
    ]

    class Answers(Fairlane):
        async def why(self, task_id: str) -> list[Reason] | None:  # noqa: ARG002
            return looks.pop(0)  # raises IndexError at the end

    with pytest.raises(IndexError):
        await submit._show_reasons(Answers(), "1")
    assert capsys.readouterr().err.splitlines() == [
        "Task 1 waits. No worker is running.",
        "Task 1 waits. About 9 tasks are ahead of it.",
        "Task 1 waits. Everything is paused.",
    ]
