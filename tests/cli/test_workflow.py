"""Workflows on the command line: on a store of one's own, and on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import engines
from fairlane.core.ids import new_id, numbered
from fairlane.core.membership import placed
from fairlane.core.model import Membership
from fairlane.core.submission import new_task
from tests.cli.kit import Cli
from tests.cli.test_schedule import at, audited

__all__ = ["at"]


@pytest.fixture
def workflow_id(at: Cli) -> str:
    """A chain of two tasks."""
    del at  # its store is there
    found = new_id()
    tasks = [
        placed(
            new_task("work"),
            found,
            number,
            Membership(name, 2, "order"),
            [numbered(found, 1)] if number == 2 else [],
            {},
        )
        for number, name in enumerate(["load", "charge"], 1)
    ]
    backend = engines.open(f"sqlite:///{Path.cwd() / 'fairlane.db'}")
    backend.run_sync(backend.ops.submit_workflow(tasks))
    backend.driver.close()
    return found


def test_it_is_shown(at: Cli, workflow_id: str) -> None:
    title, heads, first, second = at.ok("workflow", "show", workflow_id).splitlines()
    assert title == "order: running."
    assert heads.split()[:4] == ["node", "type", "state", "after"]
    assert first.split()[:4] == ["load", "work", "queued", "–"]
    assert second.split()[:4] == ["charge", "work", "scheduled", "load"]
    found = at.json("workflow", "show", workflow_id)
    assert (found["name"], found["status"]) == ("order", "running")
    assert [task["name"] for task in found["tasks"]] == ["load", "charge"]
    drawn = at.ok("workflow", "show", workflow_id, "--mermaid")
    assert drawn.splitlines()[0] == "flowchart LR"
    assert "n1 --> n2" in drawn


def test_it_is_cancelled(at: Cli, workflow_id: str) -> None:
    assert at.ok("workflow", "cancel", workflow_id) == "2 tasks cancelled.\n"
    assert at.json("workflow", "show", workflow_id)["status"] == "cancelled"
    assert at.json("workflow", "cancel", workflow_id)["applied"] == 0
    assert audited(at)[0][0] == "task.cancel"
    at.ok("delete", numbered(workflow_id, 1))
    shown = at.ok("workflow", "show", workflow_id)
    assert shown.startswith("order: cancelled. Some of its tasks have been deleted.\n")


def test_it_is_resumed(at: Cli, workflow_id: str) -> None:
    assert at.ok("workflow", "resume", workflow_id).startswith("Nothing to resume: ")
    at.ok("workflow", "cancel", workflow_id)
    wrong = at("workflow", "resume", workflow_id, "--from", "ship")
    assert wrong.exit_code == 2
    assert "no task called 'ship'" in wrong.stderr
    assert at.ok("workflow", "resume", workflow_id) == "2 tasks resumed.\n"
    assert audited(at)[-1][0] == "task.replay"
    shown = at.json("workflow", "show", workflow_id)
    assert [task["status"] for task in shown["tasks"]] == ["queued", "scheduled"]
    at.ok("workflow", "cancel", workflow_id)
    at.ok("delete", numbered(workflow_id, 1))
    assert at.ok("workflow", "resume", workflow_id) == (
        "0 tasks resumed. 1 stays as it is: a parent did not complete, or was deleted.\n"
    )


def test_it_is_deleted(at: Cli, workflow_id: str) -> None:
    refused = at("workflow", "delete", workflow_id)
    assert refused.exit_code == 1
    assert "has not ended" in refused.stderr
    at.ok("workflow", "cancel", workflow_id)
    assert at.json("workflow", "delete", workflow_id)["applied"] == 2
    assert audited(at)[-1][0] == "task.delete"
    assert at("workflow", "show", workflow_id).exit_code == 1


@pytest.mark.parametrize("command", ["show", "cancel", "resume", "delete"])
def test_there_is_none(at: Cli, command: str) -> None:
    result = at("workflow", command, new_id())
    assert result.exit_code == 1
    assert "There is no workflow" in result.stderr
    assert at("workflow", command, "x").exit_code == 2


def test_all_are_listed(at: Cli, workflow_id: str) -> None:
    heads, row = at.ok("workflow", "list").splitlines()
    assert heads.split()[:4] == ["workflow", "name", "state", "ended"]
    assert row.split()[:4] == [workflow_id, "order", "running", "0/2"]
    (found,) = at.json("workflow", "list", "--state", "running", "--name", "order")["workflows"]
    assert (found["workflow_id"], found["counts"]) == (workflow_id, {"queued": 1, "scheduled": 1})
    assert at.json("workflow", "list", "--state", "failed")["workflows"] == []
    assert at.ok("workflow", "list", "--name", "other") == "No workflows.\n"
    assert at("workflow", "list", "--state", "gone").exit_code == 2
