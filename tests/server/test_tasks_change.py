"""Changing tasks over HTTP: one, or many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core.ids import new_id
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.server import tasks
from tests.server.kit import Api, refused, told

TASKS = "/api/v1/tasks"


async def test_a_task_is_cancelled_once(served: Api) -> None:
    waiting, running = await served.submit("a"), await served.submit("b")
    worker = await served.world.worker()
    await served.world.start(await served.world.claim_one(worker, types=frozenset({"b"})))
    for task_id, executing in ((waiting, False), (running, True)):
        assert told(await served.ask("DELETE", f"{TASKS}/{task_id}"), 200) == {
            "task_id": task_id,
            "status": "cancelled",
            "previous_status": "executing" if executing else "queued",
            "was_executing": executing,
            "worker_notified": executing,
            "worker_id": worker if executing else None,
        }
        found = await served.get(f"{TASKS}/{task_id}", include_history="true")
        states = ["queued", "executing", "cancelled"] if executing else ["queued", "cancelled"]
        assert [step["state"] for step in found["state_history"]] == states
        again = await served.ask("DELETE", f"{TASKS}/{task_id}")
        assert refused(again, 409, "conflict") == {"status": "cancelled"}


@pytest.mark.parametrize("verb", ["replay", "retry"])
async def test_a_task_is_replayed(served: Api, verb: str) -> None:
    task_id = await served.submit(max_retries=0)
    worker = await served.world.worker()
    refused(await served.ask("POST", f"{TASKS}/{task_id}/{verb}"), 409, "conflict")
    await served.world.claim_and_settle(worker, Failed(TaskError.of("no")))
    terms = {"new_priority": "high", "reset_retry_count": False}
    assert await served.post(f"{TASKS}/{task_id}/{verb}", terms) == {
        "task_id": task_id,
        "status": "queued",
        "previous_status": "dead_letter",
    }
    task = await served.world.task(task_id)
    assert (task.status, task.priority, task.retry_count) == (State.QUEUED, 8, 1)
    await served.world.claim_and_settle(worker, Completed(b"1"))
    done = await served.ask("POST", f"{TASKS}/{task_id}/{verb}")
    assert refused(done, 409, "conflict") == {"status": "completed"}


async def test_many_tasks_are_changed_by_filter(served: Api) -> None:
    ids = await served.world.submit_all([new_task(type) for type in ("a", "a", "b")])
    everything = {"matched": 2, "applied": 2, "next_cursor": None}
    assert await served.post(f"{TASKS}/cancel", {"type": "a"}) == everything
    assert await served.world.census() == {State.QUEUED: 1, State.CANCELLED: 2}
    chosen = {"type": ["a", "c"], "status": "cancelled", "new_priority": 9}
    assert await served.post(f"{TASKS}/replay", chosen) == everything
    assert (await served.world.task(ids[0])).priority == 9
    three = {"matched": 3, "applied": 3, "next_cursor": None}
    assert await served.post(f"{TASKS}/cancel", {"all": True}) == three
    gone = await served.post(f"{TASKS}/delete", {"priority": [9], "tags": {}})
    assert gone == everything
    assert await served.world.census() == {State.CANCELLED: 1}


async def test_many_tasks_are_changed_by_id(served: Api) -> None:
    one, two, gone = await served.submit(), await served.submit(delay_seconds=60), new_id()
    answer = await served.post(f"{TASKS}/cancel", {"task_ids": [one, gone]})
    assert answer == {
        "matched": 2,
        "applied": 1,
        "next_cursor": None,
        "results": [
            {"task_id": one, "applied": True, "previous_status": "queued"},
            {"task_id": gone, "applied": False, "previous_status": None},
        ],
    }
    replayed = await served.post(f"{TASKS}/retry", {"task_ids": [one, two]})
    assert replayed["applied"] == 2
    kept = await served.post(f"{TASKS}/delete", {"task_ids": [one]})
    assert (kept["applied"], kept["results"][0]["previous_status"]) == (0, "queued")
    only = {"task_ids": [one, two], "status": ["failed", "scheduled"]}
    assert (await served.post(f"{TASKS}/cancel", only))["applied"] == 0
    held = await served.world.claim_one(await served.world.worker())
    stopped = await served.post(f"{TASKS}/cancel", {"task_ids": [one, two], "status": "executing"})
    assert stopped["applied"] == 1
    (told,) = [each for each in stopped["results"] if each["applied"]]
    assert (told["task_id"], told["worker_id"]) == (held.task_id, held.worker_id)


async def test_a_sweep_that_takes_long_says_where_to_go_on(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SWEEP_SECONDS", 0.0)
    await api.world.submit_all([new_task("a") for _ in range(1_000)])
    asked: dict[str, Any] = {"type": "a"}
    first = await api.post(f"{TASKS}/cancel", asked)
    assert (first["matched"], first["applied"]) == (500, 500)
    applied, cursor = 500, first["next_cursor"]
    while cursor is not None:
        more = await api.post(f"{TASKS}/cancel", {**asked, "cursor": cursor})
        applied, cursor = applied + more["applied"], more["next_cursor"]
    assert applied == 1_000
    assert await api.world.census() == {State.CANCELLED: 1_000}


SWEEPS: list[tuple[Any, int, str]] = [
    ({}, 422, "invalid_filter"),
    ({"all": False}, 422, "invalid_filter"),
    ({"all": True, "type": "a"}, 422, "invalid_filter"),
    ({"all": "yes"}, 422, "invalid_request"),
    ({"status": "done"}, 422, "invalid_request"),
    ({"status": []}, 422, "invalid_filter"),
    ({"type": ""}, 422, "invalid_filter"),
    ({"type": []}, 422, "invalid_filter"),
    ({"type": None}, 422, "invalid_request"),
    ({"type": [1]}, 422, "invalid_request"),
    ({"queue": "a b"}, 422, "invalid_filter"),
    ({"queue": {"a": 1}}, 422, "invalid_request"),
    ({"priority": "urgent"}, 422, "invalid_filter"),
    ({"priority": 11}, 422, "invalid_filter"),
    ({"priority": True}, 422, "invalid_request"),
    ({"priority": []}, 422, "invalid_filter"),
    ({"tags": {}}, 422, "invalid_filter"),
    ({"tags": {"a": 1}}, 422, "invalid_request"),
    ({"tags": {"a": "\u0000"}}, 422, "invalid_filter"),
    ({"tags": "a:b"}, 422, "invalid_request"),
    ({"worker": ""}, 422, "invalid_filter"),
    ({"worker": ["w"]}, 422, "invalid_request"),
    ({"since": "yesterday"}, 422, "invalid_request"),
    ({"until": "2026-01-01T00:00:00"}, 422, "invalid_request"),
    ({"ended_before": 1700000000}, 422, "invalid_request"),
    ({"type": "a", "cursor": "x"}, 400, "invalid_cursor"),
    ({"type": "a", "cursor": 1}, 422, "invalid_request"),
    ({"task_ids": ["mine"]}, 422, "invalid_task_id"),
    ({"task_ids": "mine"}, 422, "invalid_request"),
    ({"task_ids": ["01a1df28-3ee5-7a6e-81e1-a9bcb8dcc6c7"] * 501}, 422, "batch_too_large"),
    ({"task_ids": [], "type": "a"}, 422, "invalid_filter"),
    ({"task_ids": [], "all": True}, 422, "invalid_filter"),
    ({"task_ids": [], "status": []}, 422, "invalid_filter"),
    ({"task_ids": [], "status": "done"}, 422, "invalid_request"),
    ({"task_ids": [], "status": "queued", "type": "a"}, 422, "invalid_filter"),
    ({"unknown": 1}, 422, "invalid_request"),
    ([], 422, "invalid_request"),
]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    SWEEPS,
    ids=[f"{n}-{next(iter(bad[0]), '')}" for n, bad in enumerate(SWEEPS)],
)
async def test_sweeps_that_do_not_fit(api: Api, body: Any, status: int, code: str) -> None:
    await api.submit("a")
    for verb in ("cancel", "retry", "delete"):
        refused(await api.ask("POST", f"{TASKS}/{verb}", body), status, code)
    assert await api.world.census() == {State.QUEUED: 1}


async def test_sweeps_of_states_that_do_not_allow_it(api: Api) -> None:
    for verb, state in (("cancel", "completed"), ("retry", "completed"), ("delete", "queued")):
        answer = await api.ask("POST", f"{TASKS}/{verb}", {"status": state})
        refused(answer, 422, "invalid_filter")


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"new_priority": "urgent"}, "invalid_priority"),
        ({"new_priority": 11}, "invalid_priority"),
        ({"new_priority": 1.5}, "invalid_request"),
        ({"reset_retry_count": "no"}, "invalid_request"),
        ({"reset_retry_count": None}, "invalid_request"),
        ({"unknown": 1}, "invalid_request"),
    ],
    ids=json.dumps,
)
async def test_terms_that_do_not_fit(api: Api, terms: dict[str, Any], code: str) -> None:
    task_id = await api.submit()
    await api.world.run(api.world.ops.cancel([task_id]))
    for path in (f"tasks/{task_id}/replay", f"tasks/{task_id}/retry", f"dlq/{task_id}/replay"):
        refused(await api.ask("POST", f"/api/v1/{path}", terms), 422, code)
    for path in ("tasks/replay", "tasks/retry", "dlq/replay"):
        refused(await api.ask("POST", f"/api/v1/{path}", {"type": "work", **terms}), 422, code)
    assert await api.world.census() == {State.CANCELLED: 1}
