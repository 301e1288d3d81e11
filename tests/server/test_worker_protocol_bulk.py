"""The worker protocol in bulk, on every engine: holding, beginning, ending, giving back."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane.core import limits
from fairlane.core.states import State
from tests.server.kit import Api, refused
from tests.server.workers import Worker, registered, until

NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


async def claim(worker: Worker, request_id: str = "r1", **fields: Any) -> list[dict[str, Any]]:
    answer = await worker.told("claim", {"request_id": request_id, **fields})
    tasks: list[dict[str, Any]] = answer["tasks"]
    return tasks


async def ended(worker: Worker, *runs: dict[str, Any]) -> list[str]:
    verdicts: list[str] = (await worker.told("results", {"results": list(runs)}))["verdicts"]
    return verdicts


async def test_what_is_claimed_has_not_begun(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit(parameters={"n": 1.5}, tags={"a": "b"}, max_retries=7)
    (task,) = await claim(worker, slots=3)
    assert (task["task_id"], task["attempt"], task["parameters"]) == (task_id, 1, {"n": 1.5})
    assert (task["max_retries"], task["tags"], task["priority"]) == (7, {"a": "b"}, 5)
    assert task["retry_policy"]["base_seconds"] == 1
    stored = await served.world.task(task_id)
    assert (stored.status, stored.started_at) == (State.EXECUTING, None)
    assert await claim(worker, slots=3) == [task], "the same request again"
    begun = {"task_id": task_id, "attempt": 1, "seconds": 2}
    answer = await worker.told("starts", {"starts": [begun, {**begun, "attempt": 9}]})
    assert answer == {"verdicts": ["applied", "stale"]}
    assert (await served.world.task(task_id)).started_at is not None


async def test_held_tasks_are_none_of_limited_types(served: Api) -> None:
    worker = await registered(served)
    await served.world.run(served.world.ops.limit("few", concurrency=5))
    for type in ("few", "few", "many", "many"):
        await served.submit(type)
    held = await claim(worker, "r1", slots=0, ahead=9)
    assert {task["task_type"] for task in held} == {"many"}
    assert len(await claim(worker, "r2", slots=9)) == 2


async def test_every_way_a_run_can_end(served: Api) -> None:
    worker = await registered(served)
    ids = [await served.submit(max_retries=1, timeout_seconds=10) for _ in range(7)]
    assert len(await claim(worker, slots=7)) == 7
    error = {"message": "no", "code": "E", "traceback": "somewhere"}
    endings: list[dict[str, Any]] = [
        {"status": "completed", "result": [1], "execution_duration_seconds": 0.5},
        {"status": "failed", "error": error, "after_seconds": 77},
        {"status": "failed", "error": {**error, "retriable": False}},
        {"status": "timed_out", "execution_duration_seconds": 10},
        {"status": "released"},
        {"status": "snoozed", "after_seconds": 55},
        {"status": "completed", "result": "x" * (limits.RESULT_BYTES + 1)},
    ]
    runs = [
        {"task_id": task_id, "attempt": 1, **ending}
        for task_id, ending in zip(ids, endings, strict=True)
    ]
    late = {"task_id": ids[0], "attempt": 2, "status": "completed"}
    gone = {"task_id": NOBODY, "attempt": 1, "status": "completed"}
    assert await ended(worker, *runs, late, gone) == [*["applied"] * 7, "stale", "missing"]
    tasks = [await served.world.task(task_id) for task_id in ids]
    assert [task.status for task in tasks] == [
        State.COMPLETED,
        State.RETRYING,
        State.FAILED,
        State.RETRYING,
        State.QUEUED,
        State.SCHEDULED,
        State.FAILED,
    ]
    assert tasks[0].result == b"[1]"
    retrying = tasks[1]
    assert retrying.next_retry_at is not None
    assert (retrying.next_retry_at - retrying.updated_at).total_seconds() == 77
    assert retrying.error is not None
    assert (retrying.error.code, retrying.error.traceback) == ("E", "somewhere")
    assert tasks[3].timeout_seconds == 15
    assert [task.retry_count for task in tasks] == [0, 1, 1, 1, 0, 0, 1]
    assert tasks[4].attempts[0].started_at is None, "it never began"
    assert await ended(worker, *runs[:4]) == ["applied"] * 4, "the same again"


async def test_progress_in_bulk(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit()
    await claim(worker)
    report = {"task_id": task_id, "attempt": 1, "progress_percent": 40, "status_message": "on"}
    answer = await worker.told("reports", {"reports": [report, {**report, "task_id": NOBODY}]})
    assert answer == {"verdicts": ["applied", "missing"]}
    progress = (await served.world.task(task_id)).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (40, "on")


async def test_a_pulse_tells_what_is_no_longer_the_worker_s(served: Api) -> None:
    worker = await registered(served, lease_seconds=45)
    task_id = await served.submit()
    await claim(worker)
    await served.world.run(served.world.ops.cancel([task_id]))
    pulse = await worker.told("pulse", {"current_load": 1})
    assert 40 < pulse["remaining_seconds"] <= 45
    assert pulse["status"] == "active"
    assert pulse["let_go"] == [{"task_id": task_id, "attempt": 1}]


async def test_a_claim_waits_for_a_task(api: Api) -> None:
    worker = await registered(api)
    waits = asyncio.create_task(claim(worker, slots=1, wait_seconds=60))
    await until(lambda: api.services.polls.waiting == 1)
    task_id = await api.submit()
    (task,) = await waits
    assert task["task_id"] == task_id
    assert (await api.world.task(task_id)).started_at is None
    empty = await claim(worker, "r2", slots=0, ahead=1, wait_seconds=60)
    assert empty == [], "who has no room is not kept waiting"


async def test_an_id_begins_with_a_name_and_stays_when_it_is_renewed(served: Api) -> None:
    worker = await registered(served, name="far.away", capacity=3)
    assert worker.id.startswith("far.away.")
    again = await registered(served, worker_id=worker.id, capacity=4)
    assert again.id == worker.id
    (known,) = await served.world.run(served.world.ops.workers())
    assert known.capacity == 4
    stranger = await registered(served, worker_id=NOBODY)
    assert stranger.id != NOBODY


async def test_what_does_not_fit(api: Api) -> None:
    worker = await registered(api)
    run = {"task_id": NOBODY, "attempt": 1, "status": "completed"}
    for call, body, code in (
        ("claim", {}, "invalid_request"),
        ("claim", {"request_id": "a b"}, "invalid_request"),
        ("results", {"results": [{**run, "status": "lost"}]}, "invalid_request"),
        ("results", {"results": [{**run, "task_id": "x"}]}, "invalid_task_id"),
        ("results", {"results": [run] * 501}, "batch_too_large"),
        ("starts", {"starts": [{"task_id": NOBODY}]}, "invalid_request"),
        ("reports", {"reports": [{**run, "progress_percent": 101}]}, "invalid_request"),
    ):
        refused(await worker.ask(call, body), 422, code)
    strange = Worker(api, "nobody", await api.connect())
    refused(await strange.ask("claim", {"request_id": "r"}), 409, "worker_gone")


async def test_a_submission_may_name_its_id(served: Api) -> None:
    task = {"task_type": "work", "task_id": NOBODY, "retry_policy": {"base_seconds": 9}}
    first = await served.post("/api/v1/tasks/batch", {"tasks": [task]}, 201)
    again = await served.post("/api/v1/tasks/batch", {"tasks": [task]}, 201)
    assert [each["tasks"][0]["known"] for each in (first, again)] == [False, True]
    assert first["tasks"][0]["created_at"] == again["tasks"][0]["created_at"]
    body = {"task_ids": [NOBODY, NOBODY.replace("0", "1")]}
    found = (await served.post("/api/v1/tasks/lookup", body))["tasks"]
    assert found[0]["retry_policy"]["base_seconds"] == 9
    assert found[1] is None
