"""Submitting tasks over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core.ids import new_id, numbered
from fairlane.core.model import Accepted, NewTask
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.server.kit import Api, refused, told

TASKS = "/api/v1/tasks"
PARENT = "018f5e2a-7c3b-7d10-8a2e-5b6c7d8e9f01"
NODE: dict[str, Any] = {
    "task_id": numbered(PARENT, 1),
    "workflow_id": PARENT,
    "workflow": {"node": "a", "nodes": 1},
}
"""What makes a task the only one of a workflow."""


async def test_a_task_is_accepted_and_estimated(served: Api) -> None:
    sent = {"task_type": "resize", "parameters": {"n": 1}, "priority": "high"}
    first = await served.post(TASKS, sent, 201)
    stored = await served.world.task(first["task_id"])
    assert first == {
        "task_id": stored.task_id,
        "status": "queued",
        "priority": "high",
        "effective_priority": "high",
        "queue_position": 1,
        "estimated_wait_seconds": None,
        "created_at": first["created_at"],
        "trace_id": stored.trace_id,
    }
    assert len(first["created_at"]) == 27
    later = await served.post(TASKS, {"type": "resize", "payload": {}, "delay_seconds": 60}, 201)
    assert (later["status"], later["queue_position"]) == ("scheduled", None)


async def test_positions_count_whatever_was_just_submitted(served: Api) -> None:
    """In batches, in 001's style, at other levels and in other queues."""
    low, high = {"task_type": "a", "priority": "low"}, {"task_type": "a", "priority": "high"}

    async def place(**fields: Any) -> int:
        position: int = (await served.post(TASKS, {"task_type": "a", **fields}, 201))[
            "queue_position"
        ]
        return position

    assert await place() == 1
    await served.post(f"{TASKS}/batch", {"tasks": [low, high, high]}, 201)
    assert await place() == 4
    await served.post("/api/tasks", {"type": "a", "payload": {}}, 201)
    assert await place(delay_seconds=60) is None
    assert await place() == 6
    assert await place(priority="high") == 3
    assert await place(priority="low") == 9
    assert await place(queue="other") == 1


async def work_off(api: Api, count: int, seconds: float) -> None:
    """Complete tasks, and let that take some seconds of the store's time."""
    worker = await api.world.worker(lease=3_600)
    while count:
        claimed = await api.world.claim(worker, min(count, 100))
        for task in claimed:
            await api.world.settle(task)
        count -= len(claimed)
    await api.world.advance(seconds)
    api.services.places._view._seen_at = float("-inf")  # it may be half a second old


async def test_the_wait_goes_by_the_last_seconds_with_work(served: Api) -> None:
    one = {"task_type": "a"}
    await served.post(f"{TASKS}/batch", {"tasks": [one] * 1_000}, 201)
    await work_off(served, 200, 500)  # long enough, so that the test's own seconds do not matter
    answer = await served.post(TASKS, one, 201)
    assert answer["queue_position"] == 801
    assert answer["estimated_wait_seconds"] == pytest.approx(2_000, rel=0.1)
    # Nothing is said of a time in which nothing waited.
    await work_off(served, 801, 3_600)
    await served.post(TASKS, one, 201)
    waits = (await served.post(TASKS, one, 201))["estimated_wait_seconds"]
    assert waits == pytest.approx(2.5, rel=0.1)


async def test_a_wait_that_nobody_can_know_is_null(served: Api) -> None:
    one = {"task_type": "a"}
    places = [await served.post(TASKS, one, 201) for _ in range(3)]
    assert [place["estimated_wait_seconds"] for place in places] == [None] * 3
    # Some were completed, in a time that nobody observed.
    other = await served.world.submit_all([new_task("a") for _ in range(10)])
    assert len(other) == 10
    await work_off(served, 13, 3_600)
    places = [await served.post(TASKS, one, 201) for _ in range(3)]
    assert [place["estimated_wait_seconds"] for place in places] == [0.0, None, None]


async def test_the_same_key_answers_with_the_same_task(served: Api) -> None:
    sent = {"task_type": "resize", "parameters": {"b": 1, "a": 2}, "trace_id": "t"}
    first = await served.post(TASKS, sent, 201, idempotency_key="k")
    again = await served.ask("POST", TASKS, {**sent, "idempotency_key": "k"})
    assert again.headers["idempotent-replayed"] == "true"
    assert told(again, 200) == first
    other = await served.ask("POST", TASKS, {**sent, "parameters": {}}, idempotency_key="k")
    refused(other, 422, "idempotency_conflict")
    await served.world.run(served.world.ops.cancel([first["task_id"]]))
    ended = told(await served.ask("POST", TASKS, sent, idempotency_key="k"), 200)
    assert (ended["status"], ended["queue_position"]) == ("cancelled", None)


async def test_an_id_stands_for_one_task(served: Api) -> None:
    sent = {"task_type": "resize", "parameters": {"b": 1, "a": 2}, "task_id": new_id()}
    first = await served.post(TASKS, sent, 201)
    again = await served.ask("POST", TASKS, sent)
    assert told(again, 200)["task_id"] == first["task_id"]
    changes: list[dict[str, Any]] = [{"parameters": {}}, {"task_type": "crop"}]
    for changed in changes:
        refused(await served.ask("POST", TASKS, {**sent, **changed}), 422, "task_id_conflict")
        batch = {"tasks": [{"task_type": "resize"}, {**sent, **changed}]}
        refused(await served.ask("POST", f"{TASKS}/batch", batch), 422, "task_id_conflict")
    assert await served.world.depth() == 1


async def test_a_key_whose_task_was_just_deleted_is_free(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions = api.services.submissions
    send = submissions.send

    async def late(task: NewTask) -> Accepted:
        monkeypatch.setattr(submissions, "send", send)
        return Accepted(new_id(), State.QUEUED, 0, known=True)

    monkeypatch.setattr(submissions, "send", late)
    accepted = await api.post(TASKS, {"task_type": "a"}, 201)
    assert await api.world.state(accepted["task_id"]) is State.QUEUED


async def test_a_double_of_a_unique_task_answers_with_the_one_there_is(served: Api) -> None:
    sent = {"task_type": "resize", "parameters": {"a": 1}, "unique": True}
    first = await served.post(TASKS, sent, 201)
    again = await served.ask("POST", TASKS, sent)
    assert again.headers["idempotent-replayed"] == "true"
    assert told(again, 200)["task_id"] == first["task_id"]
    strict = {**sent, "unique": {"mode": "reject"}}
    refused(await served.ask("POST", TASKS, strict), 409, "duplicate_task")


async def test_a_batch_is_stored_in_order(served: Api) -> None:
    tasks: list[dict[str, Any]] = [
        {"task_type": "a"},
        {"task_type": "b", "delay_seconds": 9},
    ]
    accepted = await served.post(f"{TASKS}/batch", {"tasks": tasks}, 201)
    assert [item["status"] for item in accepted["tasks"]] == ["queued", "scheduled"]
    for item, sent in zip(accepted["tasks"], tasks, strict=True):
        assert (await served.world.task(item["task_id"])).type == sent["task_type"]
    refused(await served.ask("POST", f"{TASKS}/batch", {"tasks": []}), 422, "invalid_request")


async def test_a_batch_names_each_that_does_not_fit(api: Api) -> None:
    fit: dict[str, Any] = {"task_type": "a"}
    tasks = [fit, {**fit, "priority": "urgent"}, fit, {**fit, "queue": 7}, {**fit, "x": 1}, 5]
    details = refused(
        await api.ask("POST", f"{TASKS}/batch", {"tasks": tasks}), 422, "invalid_batch"
    )
    named = [(error["index"], error["code"]) for error in details["errors"]]
    assert named == [
        (1, "invalid_priority"),
        (3, "invalid_request"),
        (4, "invalid_request"),
        (5, "invalid_request"),
    ]
    assert all(error["message"].endswith(".") for error in details["errors"])
    assert await api.world.census() == {}


async def test_a_batch_is_all_or_none(served: Api) -> None:
    tasks = [{"task_type": "a"}, {"task_type": "b", "depends_on": [new_id()]}]
    answer = await served.ask("POST", f"{TASKS}/batch", {"tasks": tasks})
    refused(answer, 422, "unknown_dependency")
    assert await served.world.census() == {}


async def test_the_largest_batch_and_one_more(api: Api) -> None:
    tasks = [{"task_type": "a"}] * 1_001
    refused(await api.ask("POST", f"{TASKS}/batch", {"tasks": tasks}), 422, "batch_too_large")
    accepted = await api.post(f"{TASKS}/batch", {"tasks": tasks[1:]}, 201)
    assert len({item["task_id"] for item in accepted["tasks"]}) == 1_000
    assert await api.world.census() == {State.QUEUED: 1_000}


async def test_a_task_depends_on_those_whose_results_it_takes(served: Api) -> None:
    first, second = [await served.submit() for _ in range(2)]
    inputs = {"order": {"parents": [second]}}
    task_id = await served.submit(inputs=inputs, depends_on=[first])
    task = await served.world.task(task_id)
    assert (task.state, task.depends_on) == (State.SCHEDULED, (first, second))
    body = {"task_type": "work", "inputs": {"order": {"parents": [PARENT]}}}
    refused(await served.ask("POST", TASKS, body), 422, "unknown_dependency")


async def test_a_task_of_a_workflow(served: Api) -> None:
    task_id = await served.submit(**NODE)
    task = await served.world.task(task_id)
    assert (task.task_id, task.workflow_id) == (NODE["task_id"], PARENT)
    view = await served.get(f"{TASKS}/{task_id}")
    assert view["workflow_id"] == PARENT
    assert view["workflow"] == {"node": "a", "nodes": 1}


async def test_numbers_come_back_as_they_were_sent(served: Api) -> None:
    sent = b'{"a": 1.10, "b": 12345678901234567890123, "c": 1e2, "d": -0.0, "e": "\\u00e9"}'
    body = b'{"task_type": "exact", "parameters": %s}' % sent
    task_id = (await served.post(TASKS, body, 201))["task_id"]
    reply = await served.ask("GET", f"{TASKS}/{task_id}")
    assert sent in reply.body
    assert sent in (await served.ask("GET", TASKS)).body


BAD: list[tuple[dict[str, Any], str]] = [
    ({"task_type": None}, "invalid_type"),
    ({"task_type": ""}, "invalid_type"),
    ({"task_type": "a b"}, "invalid_type"),
    ({"task_type": "x" * 256}, "invalid_type"),
    ({"task_type": 1}, "invalid_request"),
    ({"type": "other"}, "invalid_task"),
    ({"parameters": []}, "invalid_payload"),
    ({"parameters": "text"}, "invalid_payload"),
    ({"parameters": None}, "invalid_payload"),
    ({"payload": {"other": 1}}, "invalid_task"),
    ({"priority": "urgent"}, "invalid_priority"),
    ({"priority": 11}, "invalid_priority"),
    ({"priority": -1}, "invalid_priority"),
    ({"priority": 1.5}, "invalid_request"),
    ({"priority": True}, "invalid_request"),
    ({"queue": ""}, "invalid_queue"),
    ({"queue": "a/b"}, "invalid_queue"),
    ({"queue": None}, "invalid_request"),
    ({"required_capabilities": "gpu"}, "invalid_request"),
    ({"required_capabilities": ["a b"]}, "invalid_capabilities"),
    ({"required_capabilities": [str(n) for n in range(65)]}, "invalid_capabilities"),
    ({"timeout_seconds": 0}, "invalid_timeout"),
    ({"timeout_seconds": -1}, "invalid_timeout"),
    ({"timeout_seconds": "60"}, "invalid_request"),
    ({"timeout_seconds": 1e9}, "invalid_timeout"),
    ({"max_retries": -1}, "invalid_max_retries"),
    ({"max_retries": 1001}, "invalid_max_retries"),
    ({"max_retries": 1.5}, "invalid_request"),
    ({"delay_seconds": -1}, "invalid_time"),
    ({"delay_seconds": 1e12}, "invalid_time"),
    ({"delay_seconds": True}, "invalid_request"),
    ({"run_at": "tomorrow"}, "invalid_request"),
    ({"run_at": "2090-01-01T00:00:00"}, "invalid_time"),
    ({"run_at": "2090-01-01T00:00:00Z", "delay_seconds": 1}, "invalid_time"),
    ({"expires_at": 5}, "invalid_request"),
    ({"expires_at": "0001-01-01T00:00:00+23:59"}, "invalid_time"),
    ({"idempotency_key": ""}, "invalid_idempotency_key"),
    ({"idempotency_key": "a\nb"}, "invalid_idempotency_key"),
    ({"idempotency_key": "x" * 256}, "invalid_idempotency_key"),
    ({"unique": "yes"}, "invalid_request"),
    ({"unique": {"arguments": []}}, "invalid_unique"),
    ({"unique": {"states": []}}, "invalid_unique"),
    ({"unique": {"states": ["done"]}}, "invalid_request"),
    ({"unique": {"period_seconds": 0}}, "invalid_unique"),
    ({"unique": {"mode": "maybe"}}, "invalid_request"),
    ({"unique": {"by": 1}}, "invalid_request"),
    ({"tags": ["a"]}, "invalid_request"),
    ({"tags": {"a": 1}}, "invalid_request"),
    ({"tags": {"a": "\u0000"}}, "invalid_tags"),
    ({"tags": {str(n): "" for n in range(65)}}, "invalid_tags"),
    ({"depends_on": ["x"]}, "invalid_task_id"),
    ({"on_parent_failure": "explode"}, "invalid_request"),
    ({"inputs": []}, "invalid_request"),
    ({"inputs": {"order": PARENT}}, "invalid_request"),
    ({"inputs": {"order": {}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": PARENT}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": [PARENT], "many": 1}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": [PARENT], "from": 1}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": [PARENT], "path": "a"}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": [PARENT], "path": [1.5]}}}, "invalid_request"),
    ({"inputs": {"order": {"parents": [PARENT], "path": [-1]}}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": [PARENT], "path": [0] * 17}}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": ["x"]}}}, "invalid_task_id"),
    ({"inputs": {"order": {"parents": []}}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": [PARENT, PARENT]}}}, "invalid_inputs"),
    ({"inputs": {"n": {"parents": [PARENT]}}}, "invalid_inputs"),
    ({"inputs": {"": {"parents": [PARENT]}}}, "invalid_inputs"),
    ({"inputs": {"$blob": {"parents": [PARENT]}}}, "invalid_inputs"),
    ({"inputs": {str(n): {"parents": [PARENT]} for n in range(101)}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": [PARENT], "many": True, "nesting": [2]}}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": [PARENT], "nesting": [1, -1]}}}, "invalid_inputs"),
    ({"inputs": {"order": {"parents": [PARENT], "nesting": [0.5]}}}, "invalid_request"),
    ({"workflow_id": PARENT}, "invalid_workflow"),
    ({"workflow": {"node": "a", "nodes": 1}}, "invalid_workflow"),
    ({"workflow_id": PARENT, "workflow": {"node": "a", "nodes": 1}}, "invalid_workflow"),
    ({**NODE, "workflow_id": "x"}, "invalid_task_id"),
    ({**NODE, "task_id": PARENT}, "invalid_workflow"),
    ({**NODE, "workflow": {"node": "a", "nodes": 0}}, "invalid_workflow"),
    ({**NODE, "workflow": {"node": "a", "nodes": 1_000}}, "invalid_workflow"),
    ({**NODE, "workflow": {"node": "", "nodes": 1}}, "invalid_workflow"),
    ({**NODE, "workflow": {"node": "a", "nodes": 1, "name": "a\nb"}}, "invalid_workflow"),
    ({**NODE, "workflow": {"node": "a"}}, "invalid_request"),
    ({**NODE, "workflow": {"node": "a", "nodes": 1, "of": 1}}, "invalid_request"),
    ({**NODE, "workflow": "order"}, "invalid_request"),
    ({"trace_id": ""}, "invalid_trace"),
    ({"traceparent": "x" * 513}, "invalid_trace"),
    ({"task_id": "mine"}, "invalid_task_id"),
    ({"unknown": 1}, "invalid_request"),
]


@pytest.mark.parametrize(("change", "code"), BAD, ids=[json.dumps(bad)[:50] for bad, _ in BAD])
async def test_what_does_not_fit_is_refused(api: Api, change: dict[str, Any], code: str) -> None:
    sent = {"task_type": "fits", "parameters": {"n": 1}, **change}
    refused(await api.ask("POST", TASKS, sent), 422, code)
    refused(await api.ask("POST", f"{TASKS}/batch", {"tasks": [sent]}), 422, "invalid_batch")
    assert await api.world.census() == {}


BODIES: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"", {}, 400, "invalid_json"),
    (b"{", {}, 400, "invalid_json"),
    (b'{"task_type": "a"} x', {}, 400, "invalid_json"),
    (b'{"task_type": "\xff"}', {}, 400, "invalid_json"),
    (b'{"task_type": "a", "parameters": {"n": NaN}}', {}, 400, "invalid_json"),
    (b"[]", {}, 422, "invalid_request"),
    (b"null", {}, 422, "invalid_request"),
    (b'{"task_type": "a"}', {"content_type": "text/plain"}, 415, "unsupported_media_type"),
    (b'{"task_type": "a", "queue": ' + b"[" * 5_000, {}, 422, "invalid_request"),
    (b'{"task_type": "a", "parameters": ' + b'{"a":' * 101 + b"1" + b"}" * 102, {}, 422, ""),
    (b'{"task_type": "a", "parameters": {"a": "%s"}}' % (b"x" * 262_144), {}, 413, ""),
    (b'{"task_type": "a", "parameters": {"a": "%s"}}' % (b"x" * 2_097_152), {}, 413, ""),
    (b'{"task_type": "a"}', {"idempotency_key": "\xff"}, 422, "invalid_request"),
    (b'{"task_type": "a", "idempotency_key": "b"}', {"idempotency_key": "c"}, 422, "invalid_task"),
]


@pytest.mark.parametrize(("body", "headers", "status", "code"), BODIES, ids=range(len(BODIES)))
async def test_what_is_no_submission_is_refused(
    api: Api, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await api.ask("POST", TASKS, body, **headers)
    refused(answer, status, code or answer.code)
    assert await api.world.census() == {}
    assert await api.get("/healthz") == {"status": "ok"}
