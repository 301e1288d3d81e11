"""Workflows over HTTP: submitted as a batch, shown, and cancelled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core.ids import new_id, new_run, numbered
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from tests.server.kit import Api, refused

WORKFLOWS = "/api/v1/workflows"


async def submitted(api: Api) -> str:
    """A chain of two tasks."""
    workflow_id = new_run(2)
    first, second = numbered(workflow_id, 1), numbered(workflow_id, 2)
    place = {"nodes": 2, "name": "order"}
    tasks: list[dict[str, Any]] = [
        {"task_id": first, "workflow": {"node": "load", **place}, "max_retries": 0},
        {
            "task_id": second,
            "workflow": {"node": "charge", "answers": True, **place},
            "inputs": {"groups": {"parents": [first], "many": True, "nesting": [1, -1]}},
        },
    ]
    body = {"tasks": [{"task_type": "a", "workflow_id": workflow_id, **task} for task in tasks]}
    await api.post("/api/v1/tasks/batch", body, 201)
    return workflow_id


async def test_a_workflow_is_shown_with_its_tasks(served: Api) -> None:
    workflow_id = await submitted(served)
    worker = await served.world.worker()
    failed = Failed(TaskError.of("sold out"))
    await served.world.claim_and_settle(worker, failed)
    view = await served.get(f"{WORKFLOWS}/{workflow_id}")
    load, charge = view.pop("tasks")
    assert view.pop("created_at") < view.pop("ended_at")
    assert view == {
        "workflow_id": workflow_id,
        "name": "order",
        "status": "failed",
        "on_failure": "continue",
        "complete": True,
    }
    assert load.pop("ended_at") <= charge.pop("ended_at")
    first, second = numbered(workflow_id, 1), numbered(workflow_id, 2)
    usual = {
        "task_type": "a",
        "on_exit": False,
        "on_parent_failure": "cancel",
        "started_at": load["started_at"],
    }
    assert load == {
        **usual,
        "task_id": first,
        "name": "load",
        "status": "dead_letter",
        "parents": [],
        "error": "sold out",
        "doomed": False,
        "answers": False,
    }
    assert charge == {
        **usual,
        "task_id": second,
        "name": "charge",
        "status": "cancelled",
        "parents": [first],
        "error": "A task it depends on did not complete.",
        "doomed": True,
        "answers": True,
        "started_at": None,
    }
    task = await served.get(f"/api/v1/tasks/{second}")
    assert task["inputs"]["groups"]["nesting"] == [1, -1]


async def test_it_is_cancelled_whole(served: Api) -> None:
    workflow_id = await submitted(served)
    path = f"{WORKFLOWS}/{workflow_id}/cancel"
    answer = await served.post(path)
    assert (answer["matched"], answer["applied"]) == (2, 2)
    assert [each["task_id"] for each in answer["results"]] == [
        numbered(workflow_id, number) for number in (2, 1)
    ]
    assert (await served.get(f"{WORKFLOWS}/{workflow_id}"))["status"] == "cancelled"
    again = await served.post(path)
    assert (again["matched"], again["applied"]) == (0, 0)


async def test_they_are_listed(served: Api) -> None:
    assert await served.get(WORKFLOWS) == {"workflows": [], "next_cursor": None}
    ids = [await submitted(served) for _ in range(3)]
    await served.post(f"{WORKFLOWS}/{ids[0]}/cancel")
    first = await served.get(f"{WORKFLOWS}?limit=2")
    assert [each["workflow_id"] for each in first["workflows"]] == [ids[2], ids[1]]
    rest = await served.get(f"{WORKFLOWS}?cursor={first['next_cursor']}")
    (only,) = rest["workflows"]
    assert only.pop("created_at") < only.pop("ended_at")
    assert only == {
        "workflow_id": ids[0],
        "name": "order",
        "state": "cancelled",
        "tasks": 2,
        "counts": {"cancelled": 2},
    }
    assert rest["next_cursor"] is None
    ended = await served.get(f"{WORKFLOWS}?state=failed&state=cancelled&name=order")
    assert [each["workflow_id"] for each in ended["workflows"]] == [ids[0]]
    assert (await served.get(f"{WORKFLOWS}?name=other"))["workflows"] == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("state=gone", "invalid_request"),
        ("limit=0", "invalid_request"),
        ("limit=101", "invalid_request"),
        ("colour=red", "invalid_request"),
        ("name=", "invalid_workflow"),
    ],
)
async def test_no_list(served: Api, query: str, code: str) -> None:
    refused(await served.ask("GET", f"{WORKFLOWS}?{query}"), 422, code)


async def test_a_cursor_of_another_list(served: Api) -> None:
    refused(await served.ask("GET", f"{WORKFLOWS}?cursor=x"), 400, "invalid_cursor")


async def test_it_is_resumed_from_what_failed(served: Api) -> None:
    workflow_id = await submitted(served)
    first, second = numbered(workflow_id, 1), numbered(workflow_id, 2)
    worker = await served.world.worker()
    path = f"{WORKFLOWS}/{workflow_id}/resume"
    assert await served.post(path) == {
        "matched": 0,
        "applied": 0,
        "next_cursor": None,
        "results": [],
    }
    await served.world.claim_and_settle(worker, Failed(TaskError.of("sold out")))
    answer = await served.post(path)
    assert (answer["matched"], answer["applied"]) == (2, 2)
    assert answer["results"] == [
        {"task_id": first, "applied": True, "previous_status": "dead_letter"},
        {"task_id": second, "applied": True, "previous_status": "cancelled"},
    ]
    for _ in range(2):
        await served.world.claim_and_settle(worker)
    assert (await served.get(f"{WORKFLOWS}/{workflow_id}"))["status"] == "completed"
    assert (await served.post(path, {"from": None}))["matched"] == 0
    assert (await served.post(path, {"from": "charge"}))["applied"] == 1
    view = await served.get(f"{WORKFLOWS}/{workflow_id}")
    assert [task["status"] for task in view["tasks"]] == ["completed", "queued"]


async def test_a_node_that_there_is_not(served: Api) -> None:
    workflow_id = await submitted(served)
    path = f"{WORKFLOWS}/{workflow_id}/resume"
    answer = await served.ask("POST", path, {"from": "ship"})
    refused(answer, 422, "unknown_node")
    message = json.loads(answer.body)["error"]["message"]
    assert "'ship'" in message
    assert "charge, load" in message
    bodies: list[Any] = [{"from": 5}, {"from": "n" * 256}, {"form": "load"}, []]
    for wrong in bodies:
        refused(await served.ask("POST", path, wrong), 422, "invalid_request")


async def test_it_is_deleted_when_it_has_ended(served: Api) -> None:
    workflow_id = await submitted(served)
    path = f"{WORKFLOWS}/{workflow_id}"
    refused(await served.ask("DELETE", path), 409, "workflow_running")
    await served.post(f"{path}/cancel")
    answer = json.loads((await served.ask("DELETE", path)).body)
    assert (answer["matched"], answer["applied"]) == (2, 2)
    refused(await served.ask("GET", path), 404, "workflow_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("POST", "/cancel"), ("POST", "/resume"), ("DELETE", "")]
)
async def test_there_is_none(served: Api, method: str, path: str) -> None:
    alone = await served.submit()
    for workflow_id in (new_id(), alone, numbered(alone, -1), "x", "018F5E2A"):
        answer = await served.ask(method, f"{WORKFLOWS}/{workflow_id}{path}")
        refused(answer, 404, "workflow_not_found")
