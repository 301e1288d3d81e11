"""The dead letters over HTTP."""

from __future__ import annotations

import pytest

from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from tests.server.kit import Api, refused, told

DLQ = "/api/v1/dlq"


async def _dead(api: Api, *types: str) -> list[str]:
    """Dead letters of these types."""
    worker = await api.world.worker()
    ids = []
    for number, type in enumerate(types):
        ids.append(await api.submit(type, max_retries=0))
        error = TaskError.of(f"no luck with {number}", "E")
        await api.world.claim_and_settle(worker, Failed(error))
    return ids


async def test_dead_letters_are_listed_and_replayed(served: Api) -> None:
    one, two, three = await _dead(served, "a", "b", "b")
    live = await served.submit()
    first = await served.get(DLQ, limit=2)
    rest = await served.get(DLQ, cursor=first["next_cursor"])
    assert [task["task_id"] for task in first["tasks"] + rest["tasks"]] == [three, two, one]
    assert first["tasks"][0]["error"]["reason"] == "max_retries_exceeded"
    assert [task["task_id"] for task in (await served.get(DLQ, type="a"))["tasks"]] == [one]
    path = f"/api/v1/tasks/{one}"
    history = (await served.get(path, include_history="true"))["state_history"]
    assert [step["state"] for step in history] == ["queued", "executing", "dead_letter"]
    terms = {"reset_retry_count": True, "new_priority": "low"}
    replayed = await served.post(f"{DLQ}/{one}/replay", terms)
    assert replayed == {"task_id": one, "status": "queued", "previous_status": "dead_letter"}
    history = (await served.get(path, include_history="true"))["state_history"]
    assert [step["state"] for step in history[2:]] == ["dead_letter", "queued"]
    task = await served.world.task(one)
    assert (task.priority, task.retry_count) == (2, 0)
    for task_id in (one, live):
        not_dead = await served.ask("POST", f"{DLQ}/{task_id}/replay")
        assert refused(not_dead, 409, "conflict") == {"status": "queued"}
    swept = await served.post(f"{DLQ}/replay", {"type": "b"})
    assert swept == {"matched": 2, "applied": 2, "next_cursor": None}
    assert await served.world.census() == {State.QUEUED: 4}


async def test_dead_letters_are_analysed_and_purged(served: Api) -> None:
    ids = await _dead(served, "a", "b", "b")
    await served.world.run(served.world.ops.cancel([await served.submit()]))
    found = await served.get(f"{DLQ}/analysis")
    assert (found["analysed"], found["complete"]) == (3, True)
    group = found["groups"][0]
    assert group.pop("failure") != found["groups"][1]["failure"]
    assert group.pop("example") in ids
    assert group.pop("first_seen") <= group.pop("last_seen")
    assert group == {
        "type": "b",
        "code": "E",
        "shape": "no luck with <n>",
        "count": 2,
        "retriable_share": 1.0,
    }
    refused(await served.ask("DELETE", DLQ), 422, "invalid_filter")
    purged = told(await served.ask("DELETE", f"{DLQ}?type=b"), 200)
    assert purged == {"matched": 2, "applied": 2, "next_cursor": None}
    assert told(await served.ask("DELETE", f"{DLQ}?all=true"), 200)["applied"] == 1
    assert await served.world.census() == {State.CANCELLED: 1}


async def test_a_group_is_listed_replayed_and_purged(served: Api) -> None:
    one, two, three, four = await _dead(served, "b", "a", "b", "b")
    worker = await served.world.worker()
    other = await served.submit("b", max_retries=0)
    await served.world.claim_and_settle(worker, Failed(TaskError.of("no luck with 5", "F")))
    groups = (await served.get(f"{DLQ}/analysis"))["groups"]
    marks = {(each["type"], each["code"]): each["failure"] for each in groups}
    mark = marks["b", "E"]
    first = await served.get(DLQ, failure=mark, limit=2)
    rest = await served.get(DLQ, failure=mark, limit=2, cursor=first["next_cursor"])
    assert [task["task_id"] for task in first["tasks"] + rest["tasks"]] == [four, three, one]
    assert rest["next_cursor"] is None
    narrower = await served.get(DLQ, failure=mark, type="a")
    assert narrower == {"tasks": [], "next_cursor": None}
    replay = {"failure": mark, "type": "b", "new_priority": "low", "reset_retry_count": False}
    swept = await served.post(f"{DLQ}/replay", replay)
    assert swept == {"matched": 3, "applied": 3, "next_cursor": None}
    assert (await served.world.task(three)).priority == 2
    purged = told(await served.ask("DELETE", f"{DLQ}?failure={marks['b', 'F']}"), 200)
    assert purged == {"matched": 1, "applied": 1, "next_cursor": None}
    assert await served.world.census() == {State.QUEUED: 3, State.DEAD_LETTER: 1}
    assert [task["task_id"] for task in (await served.get(DLQ))["tasks"]] == [two]
    told(await served.ask("GET", f"/api/v1/tasks/{other}"), 404)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "?status=failed", None, 422, "invalid_request"),
        ("GET", "?limit=0", None, 422, "invalid_request"),
        ("GET", "?cursor=x", None, 400, "invalid_cursor"),
        ("GET", "?tag=x", None, 422, "invalid_filter"),
        ("DELETE", "?all=true&type=a", None, 422, "invalid_filter"),
        ("DELETE", "?all=maybe", None, 422, "invalid_request"),
        ("DELETE", "?limit=5", None, 422, "invalid_request"),
        ("DELETE", "?type=a&cursor=x", None, 400, "invalid_cursor"),
        ("DELETE", "?since=now", None, 422, "invalid_request"),
        ("GET", "?failure=x", None, 422, "invalid_request"),
        ("DELETE", "?all=true&failure=0123456789abcdef", None, 422, "invalid_filter"),
        ("POST", "/replay", {"failure": "0123456789ABCDEF"}, 422, "invalid_request"),
        ("POST", "/replay", {}, 422, "invalid_filter"),
        ("POST", "/replay", {"status": "failed"}, 422, "invalid_request"),
        ("POST", "/replay", {"task_ids": []}, 422, "invalid_request"),
        ("POST", "/replay", {"type": "a b"}, 422, "invalid_filter"),
        ("POST", "/mine/replay", {}, 404, "task_not_found"),
    ],
    ids=range(17),
)
async def test_what_does_not_fit(
    api: Api, method: str, path: str, body: object, status: int, code: str
) -> None:
    await _dead(api, "a")
    refused(await api.ask(method, f"{DLQ}{path}", body), status, code)
    assert await api.world.census() == {State.DEAD_LETTER: 1}
