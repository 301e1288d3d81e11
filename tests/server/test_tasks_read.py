"""Looking at tasks over HTTP, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.ids import new_id
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed, Released, Snoozed
from fairlane.core.submission import new_task
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.http.kit import SECONDS
from tests.server.kit import Api, refused, serving, told

TASKS = "/api/v1/tasks"


async def test_a_task_and_how_it_came_to_be(served: Api) -> None:
    world = served.world
    task_id = await served.submit(
        "mail", parameters={"to": "ada"}, priority=7, max_retries=1, tags={"a": "b"}
    )
    worker = await world.worker()
    claimed = await world.claim_one(worker)
    await world.settle(claimed, Failed(TaskError.of("no luck", "E"), after=0.0))
    await world.settle(await world.claim_one(worker), Completed(b'{"n": 1.0}'))
    path = f"{TASKS}/{task_id}"
    plain = await served.get(path)
    task = await served.get(path, include_history="true")
    assert task["task_type"] == "mail"
    assert task["parameters"] == {"to": "ada"}
    assert task["priority"] == 7
    assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 2, 1)
    assert task["result"] == {"n": 1.0}
    assert task["tags"] == {"a": "b"}
    assert [(run["number"], run["outcome"]) for run in task["attempts"]] == [
        (1, "failed"),
        (2, "completed"),
    ]
    history = task.pop("state_history")
    spent = task.pop("current_state_duration_seconds")
    assert task == plain
    assert [step["state"] for step in history] == [
        "queued",
        "executing",
        "retrying",
        "queued",
        "executing",
        "completed",
    ]
    assert [step["timestamp"] for step in history] == sorted(step["timestamp"] for step in history)
    assert history[0] == {"state": "queued", "timestamp": task["created_at"]}
    assert history[2]["reason"] == "failed"
    assert (history[-1]["worker_id"], history[-1]["attempt"]) == (worker, 2)
    assert history[-1]["timestamp"] == task["completed_at"]
    await world.advance(100)
    later = await served.get(path, include_history="true")
    assert 100 <= later["current_state_duration_seconds"] - spent < 100 + SECONDS


async def test_every_step_that_a_task_took(served: Api) -> None:
    world = served.world
    task_id = await served.submit(delay_seconds=50, max_retries=1)
    path = f"{TASKS}/{task_id}"
    await served.post(f"{TASKS}/cancel", {"task_ids": [task_id]})
    await served.post(f"{path}/replay")
    worker = await world.worker(lease=10_000)
    await world.settle(await world.claim_one(worker), Released(), None)
    await world.settle(await world.claim_one(worker), Snoozed(100.0))
    await world.advance(101)
    await world.settle(await world.claim_one(worker), Failed(TaskError.of("no luck"), after=20.0))
    await world.advance(21)
    await world.settle(await world.claim_one(worker), Failed(TaskError.of("no luck")))
    await served.post(f"{path}/replay")
    dying = await world.worker(lease=30)
    await world.claim_one(dying)
    await world.advance(31)
    await world.reap()
    await world.settle(await world.claim_one(await world.worker()))
    history = (await served.get(path, include_history="true"))["state_history"]
    assert [(step["state"], step.get("reason"), step.get("attempt")) for step in history] == [
        ("scheduled", None, None),
        ("cancelled", None, None),
        ("queued", "replayed", None),
        ("executing", None, 1),
        ("queued", "released", 1),
        ("executing", None, 2),
        ("scheduled", "snoozed", 2),
        ("queued", None, None),
        ("executing", None, 3),
        ("retrying", "failed", 3),
        ("queued", None, None),
        ("executing", None, 4),
        ("dead_letter", "max_retries_exceeded", 4),
        ("queued", "replayed", None),
        ("executing", None, 5),
        ("queued", "returned", 5),
        ("executing", None, 6),
        ("completed", None, 6),
    ]
    assert len(history) == (await world.task(task_id)).version, "no step is missing"
    times = [datetime.fromisoformat(step["timestamp"]) for step in history]
    assert times == sorted(times)
    assert (times[7] - times[6]).total_seconds() == pytest.approx(100, abs=SECONDS)
    assert (times[10] - times[9]).total_seconds() == pytest.approx(20, abs=SECONDS)


async def test_lists_take_filters(served: Api) -> None:
    one = await served.submit("a", queue="q", priority="low", tags={"x": "1:2", "y": ""})
    two = await served.submit("b", delay_seconds=3600)

    async def found(**query: Any) -> list[str]:
        page = await served.get(TASKS, **query)
        assert page["next_cursor"] is None
        return [task["task_id"] for task in page["tasks"]]

    assert await found() == await found(type=["a", "b"]) == [two, one]
    assert await found(type="a") == await found(queue="q") == await found(priority="2") == [one]
    assert await found(tag=["x:1:2", "y:"]) == await found(status="queued") == [one]
    assert await found(status="scheduled") == await found(priority=["medium", "9"]) == [two]
    assert await found(status=["queued", "scheduled"], since="2020-01-01T00:00:00Z") == [two, one]
    assert await found(until="2020-01-01T00:00:00+01:00") == await found(tag="x:1") == []
    worker = await served.world.worker()
    await served.world.claim_one(worker)
    assert await found(worker=worker) == [one]
    assert await found(ended_before="2090-01-01T00:00:00Z") == []


async def test_tasks_are_counted(served: Api) -> None:
    for number in range(3):
        await served.submit("mail" if number else "report", queue="post", tags={"n": str(number)})
    count = f"{TASKS}/count"
    assert await served.get(count) == {"count": 3, "exact": True}
    assert await served.get(count, type="mail", status="queued") == {"count": 2, "exact": True}
    assert await served.get(count, tag="n:2") == {"count": 1, "exact": True}
    assert await served.get(count, status=["failed", "completed"]) == {"count": 0, "exact": True}
    refused(await served.ask("GET", f"{count}?limit=1"), 422, "invalid_request")


async def test_lists_in_short_leave_out_what_can_be_large(served: Api) -> None:
    world = served.world
    task_id = await served.submit("mail", parameters={"to": "ada"}, max_retries=0)
    failure = Failed(TaskError.of("no luck", "E", traceback="somewhere"))
    await world.settle(await world.claim_one(await world.worker()), failure)
    (whole,) = (await served.get(TASKS))["tasks"]
    assert whole["error"]["traceback"] == "somewhere"
    large = {"parameters", "result", "attempts"}
    short = {name: value for name, value in whole.items() if name not in large}
    short["error"] = {**whole["error"], "traceback": None}
    assert await served.get(f"{TASKS}/summaries") == {"tasks": [short], "next_cursor": None}
    assert (await served.get(f"{TASKS}/summaries", status="queued"))["tasks"] == []
    later = await served.submit("mail")
    first = await served.get(f"{TASKS}/summaries", limit=1)
    assert first["tasks"][0]["task_id"] == later
    (last,) = (await served.get(f"{TASKS}/summaries", cursor=first["next_cursor"]))["tasks"]
    assert last["task_id"] == task_id


async def test_lists_go_on_where_they_ended(served: Api) -> None:
    ids = await served.world.submit_all([new_task("a") for _ in range(5)])
    first = await served.get(TASKS, limit=2)
    rest = await served.get(TASKS, cursor=first["next_cursor"])
    assert [task["task_id"] for task in first["tasks"] + rest["tasks"]] == ids[::-1]
    assert rest["next_cursor"] is None


async def test_a_rare_task_is_found_behind_many(api: Api) -> None:
    rare = await api.submit("rare", tags={"a": "b"})
    for _ in range(11):
        await api.world.submit_all([new_task("many") for _ in range(1_000)])
    page = await api.get(TASKS, tag="a:b")
    assert [task["task_id"] for task in page["tasks"]] == [rare]


BAD: list[tuple[str, int, str]] = [
    ("status=done", 422, "invalid_request"),
    ("status=", 422, "invalid_request"),
    ("type=", 422, "invalid_filter"),
    ("type=a%20b", 422, "invalid_filter"),
    ("queue=%00", 422, "invalid_filter"),
    ("priority=urgent", 422, "invalid_filter"),
    ("priority=11", 422, "invalid_filter"),
    ("priority=99999999999999999999", 422, "invalid_filter"),
    ("tag=a", 422, "invalid_filter"),
    ("tag=:b", 422, "invalid_filter"),
    ("tag=a:1&tag=a:2", 422, "invalid_filter"),
    ("worker=", 422, "invalid_filter"),
    ("worker=a&worker=b", 422, "invalid_request"),
    ("since=yesterday", 422, "invalid_request"),
    ("since=2026-01-01T00:00:00", 422, "invalid_request"),
    ("since=null", 422, "invalid_request"),
    ("until=", 422, "invalid_request"),
    ("ended_before=1e300", 422, "invalid_request"),
    ("limit=0", 422, "invalid_request"),
    ("limit=1001", 422, "invalid_request"),
    ("limit=-1", 422, "invalid_request"),
    ("limit=many", 422, "invalid_request"),
    ("limit=1&limit=2", 422, "invalid_request"),
    ("cursor=", 400, "invalid_cursor"),
    ("cursor=t1", 400, "invalid_cursor"),
    ("cursor=a01a1df3994ab776f8862581aea8c9fc4", 400, "invalid_cursor"),
    ("unknown=1", 422, "invalid_request"),
    ("type=%ff", 422, "invalid_request"),
    ("type", 422, "invalid_request"),
    ("&".join(["type=a"] * 101), 422, "invalid_request"),
]


@pytest.mark.parametrize(("query", "status", "code"), BAD, ids=[bad[0][:40] for bad in BAD])
async def test_queries_that_do_not_fit(api: Api, query: str, status: int, code: str) -> None:
    refused(await api.ask("GET", f"{TASKS}?{query}"), status, code)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/result"),
        ("GET", "/result?wait=1"),
        ("GET", "/why"),
        ("DELETE", ""),
        ("POST", "/retry"),
    ],
)
async def test_tasks_that_are_not_there(api: Api, method: str, path: str) -> None:
    for task_id in (new_id(), "mine", "%00", new_id().upper(), f"{new_id()}%0A"):
        answer = await api.ask(method, f"{TASKS}/{task_id}{path}")
        refused(answer, 404, "task_not_found")


@pytest.mark.parametrize(
    "path",
    ["/healthz%0A", "/healthz/", f"{TASKS}%0A", f"{TASKS}/", "/api/v1", "/%00"],
)
async def test_addresses_that_look_like_others(api: Api, path: str) -> None:
    refused(await api.ask("GET", path), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["?include_history=maybe", "?x=1", "/result?wait=-1", "/result?wait=nan", "/result?w=1"]
)
async def test_questions_about_a_task_that_do_not_fit(api: Api, path: str) -> None:
    task_id = await api.submit()
    refused(await api.ask("GET", f"{TASKS}/{task_id}{path}"), 422, "invalid_request")


async def test_results_come_when_the_task_ends(served: Api) -> None:
    task_id = await served.submit()
    path = f"{TASKS}/{task_id}/result"
    pending = {"status": "queued", "result": None, "error": None}
    assert told(await served.ask("GET", path), 202) == pending
    assert told(await served.ask("GET", f"{path}?wait=0.01"), 202) == pending
    client = await served.connect()
    await client.send(served.request("GET", f"{path}?wait=inf"))
    worker = await served.world.worker()
    await served.world.settle(await served.world.claim_one(worker), Completed(b"1.50"))
    answer = await client.answer()
    assert answer.body == b'{"status":"completed","result":1.50,"error":null}'
    failed = await served.submit(max_retries=0)
    claimed = await served.world.claim_one(worker)
    await served.world.settle(claimed, Failed(TaskError.of("no", "E", traceback="at 1")))
    told_of = told(await served.ask("GET", f"{TASKS}/{failed}/result?wait=60"), 200)
    assert told_of["status"] == "dead_letter"
    assert told_of["error"] == {
        "message": "no",
        "code": "E",
        "retriable": True,
        "reason": "max_retries_exceeded",
        "traceback": "at 1",
    }


async def test_nobody_waits_for_a_server_that_stops(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        task_id = await api.submit()
        client = await api.connect()
        await client.send(api.request("GET", f"{TASKS}/{task_id}/result?wait=60"))
        await _under_way(api)
        api.stop.set()
        assert (await client.answer()).status == 202


async def test_nothing_waits_for_a_client_that_has_gone(api: Api) -> None:
    task_id = await api.submit()
    client = await api.connect()
    await client.send(api.request("GET", f"{TASKS}/{task_id}/result?wait=60"))
    await _under_way(api)
    await client.close()
    await _under_way(api, waiting=False)


async def _under_way(api: Api, *, waiting: bool = True) -> None:
    """Until somebody waits for a result, or nobody does any more."""
    results = api.services.results
    async with asyncio.timeout(SECONDS):
        while bool(results._waiting) is not waiting:  # noqa: ASYNC110 (another task's doing)
            await asyncio.sleep(0.005)


async def test_why_a_task_waits(served: Api) -> None:
    task_id = await served.submit()
    await served.post("/api/v1/queues/default/pause")
    found = await served.get(f"{TASKS}/{task_id}/why")
    assert [reason["code"] for reason in found["reasons"]] == ["paused", "no_worker", "position"]
    assert all(reason["message"].endswith(".") for reason in found["reasons"])
    await served.ask("DELETE", f"{TASKS}/{task_id}")
    assert await served.get(f"{TASKS}/{task_id}/why") == {"reasons": []}


async def test_lookups_of_large_tasks_end_early(api: Api) -> None:
    task = {"task_type": "t", "parameters": {"data": "x" * 250_000}}
    ids = []
    for _ in range(3):
        answer = await api.post("/api/v1/tasks/batch", {"tasks": [task] * 15}, 201)
        ids += [each["task_id"] for each in answer["tasks"]]
    found = await api.post("/api/v1/tasks/lookup", {"task_ids": [new_id(), *ids]})
    fit = limits.PAGE_BYTES // 251_014
    assert [task and task["task_id"] for task in found["tasks"]] == [None, *ids[:fit]]
    page = await api.get("/api/v1/tasks", limit=1_000)
    assert len(page["tasks"]) == fit
    rest = await api.get("/api/v1/tasks", limit=1_000, cursor=page["next_cursor"])
    assert len(rest["tasks"]) == 45 - fit
    assert len((await api.get("/api/v1/tasks/summaries", limit=1_000))["tasks"]) == 45
