"""Graphs over HTTP: their tasks are named, and the server gives them ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core.ids import new_id, numbered
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed
from tests.server.kit import Api, refused, told

WORKFLOWS = "/api/v1/workflows"


def graph(**changes: Any) -> dict[str, Any]:
    """Two prices of an order, and their total. The tasks are in no order."""
    tasks: list[dict[str, Any]] = [
        {
            "node": "total",
            "task_type": "total",
            "inputs": {"prices": {"nodes": ["tea", "milk"]}},
            "parameters": {"discount": 50},
        },
        {"node": "tea", "task_type": "price", "inputs": {"order": {"node": "load", "path": [0]}}},
        {"node": "milk", "task_type": "price", "inputs": {"order": {"node": "load", "path": [1]}}},
        {"node": "load", "task_type": "load", "max_retries": 0},
        {"node": "mail", "task_type": "mail", "after": ["total"]},
    ]
    return {"name": "order", "tasks": tasks, "returns": "total", **changes}


async def test_a_graph_becomes_a_workflow(served: Api) -> None:
    answer = await served.post(WORKFLOWS, graph(), 201)
    workflow_id = answer["workflow_id"]
    assert answer["tasks"] == [
        {"node": node, "task_id": numbered(workflow_id, number), "status": status}
        for number, (node, status) in enumerate(
            [
                ("load", "queued"),
                *((name, "scheduled") for name in ("tea", "milk", "total", "mail")),
            ],
            1,
        )
    ]
    worker = await served.world.worker()
    results = [b'["tea","milk"]', b"3", b"4", b"7", b"null"]
    ran = [(await served.world.claim_and_settle(worker, Completed(each))).type for each in results]
    assert ran == ["load", "price", "price", "total", "mail"]
    view = await served.get(f"{WORKFLOWS}/{workflow_id}")
    assert (view["status"], view["complete"]) == ("completed", True)
    assert [node["name"] for node in view["tasks"] if node["answers"]] == ["total"]
    (found,) = (await served.get(WORKFLOWS))["workflows"]
    assert (found["workflow_id"], found["counts"]) == (workflow_id, {"completed": 5})
    total = await served.get(f"/api/v1/tasks/{numbered(workflow_id, 4)}")
    assert total["parameters"] == {"discount": 50}
    assert total["inputs"]["prices"]["parents"] == [
        numbered(workflow_id, 2),
        numbered(workflow_id, 3),
    ]


@pytest.mark.parametrize("way", ["header", "id"])
async def test_a_repeated_request_is_harmless(served: Api, way: str) -> None:
    body = graph(**({"workflow_id": new_id()} if way == "id" else {}))
    headers = {"Idempotency-Key": "order-7"} if way == "header" else {}
    answers = [told(await served.ask("POST", WORKFLOWS, body, **headers), 201) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len((await served.get(WORKFLOWS))["workflows"]) == 1
    other = graph(
        tasks=graph()["tasks"][3:4],
        returns=None,
        **({"workflow_id": body["workflow_id"]} if way == "id" else {}),
    )
    refused(await served.ask("POST", WORKFLOWS, other, **headers), 422, "task_id_conflict")


async def test_a_task_that_runs_at_the_end(served: Api) -> None:
    last = {"node": "report", "task_type": "report", "on_exit": "outcomes"}
    body = graph(tasks=[last, *graph()["tasks"]], on_failure="cancel")
    answer = await served.post(WORKFLOWS, body, 201)
    assert [each["node"] for each in answer["tasks"]][-1] == "report"
    worker = await served.world.worker()
    await served.world.claim_and_settle(worker, Failed(TaskError.of("gone")))
    view = await served.get(f"{WORKFLOWS}/{answer['workflow_id']}")
    assert (view["status"], view["on_failure"]) == ("running", "cancel")
    assert [node["on_exit"] for node in view["tasks"]] == [False] * 5 + [True]
    task = await served.get(f"/api/v1/tasks/{answer['tasks'][-1]['task_id']}")
    assert (task["status"], task["on_parent_failure"]) == ("queued", "continue")
    assert task["inputs"]["outcomes"]["outcomes"] is True
    assert len(task["inputs"]["outcomes"]["parents"]) == 5


def changed(place: int, **changes: Any) -> dict[str, Any]:
    tasks = graph()["tasks"]
    tasks[place] |= changes
    return graph(tasks=tasks)


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (graph(tasks=[]), "invalid_workflow", "1 to 999 tasks"),
        (
            graph(tasks=[{"node": f"n{n}", "task_type": "t"} for n in range(1000)], returns=None),
            "invalid_workflow",
            "1 to 999 tasks, not 1,000",
        ),
        (changed(3, after=["mail"]), "invalid_workflow", "'mail'"),
        (changed(3, after=["load"]), "invalid_workflow", "'load' wait for each other"),
        (changed(3, after=["nobody"]), "invalid_workflow", "'load' waits for 'nobody'"),
        (changed(3, node="tea"), "invalid_workflow", "Two tasks have the name 'tea'"),
        (changed(3, node=""), "invalid_workflow", "The name of a workflow"),
        (changed(3, task_id=new_id()), "invalid_workflow", "'load' cannot have task_id"),
        (changed(3, idempotency_key="k"), "invalid_workflow", "'load' cannot have idempotency_key"),
        (changed(1, inputs={"order": {}}), "invalid_workflow", "either node or nodes"),
        (changed(1, inputs={"order": {"parents": []}}), "invalid_workflow", "Task 2"),
        ({"tasks": [{"task_type": "a"}]}, "invalid_workflow", "Task 1"),
        ({"tasks": ["a"]}, "invalid_workflow", "Task 1"),
        (graph(on_failure="stop"), "invalid_request", "stop"),
        (
            graph(
                tasks=[{"node": each, "task_type": "t", "on_exit": "o"} for each in "ab"],
                returns=None,
            ),
            "invalid_workflow",
            "One task runs at the end, not 'a', 'b'",
        ),
        (changed(1, on_exit="order"), "invalid_workflow", "is in on_exit and in the inputs"),
        (changed(1, on_exit="all"), "invalid_workflow", "in a circle"),
        (graph(returns="nobody"), "invalid_workflow", "returns names 'nobody'"),
        (changed(1, parameters={"order": 1}), "invalid_batch", "give it once"),
        (changed(3, task_type=""), "invalid_batch", '"node":"load"'),
        (graph(workflow_id="x"), "invalid_task_id", "x"),
        (graph(workflow_id=""), "invalid_task_id", "''"),
        (graph(colour="red"), "invalid_request", "colour"),
        ({}, "invalid_request", "tasks"),
    ],
)
async def test_what_does_not_fit(served: Api, body: dict[str, Any], code: str, says: str) -> None:
    answer = await served.ask("POST", WORKFLOWS, body)
    refused(answer, 422, code)
    assert says in json.dumps(json.loads(answer.body), separators=(",", ":"))
    assert (await served.get(WORKFLOWS))["workflows"] == []
    assert await served.world.census() == {}
