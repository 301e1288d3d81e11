"""The worker protocol on every engine: registering, polling, reporting, leaving."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.model import Verdict, WorkerStatus
from fairlane.core.states import State
from fairlane.engines.compression.driver import compress
from tests.server.http.kit import SECONDS
from tests.server.kit import CALM, Api, refused, serving, told
from tests.server.workers import WORKERS, Worker, begun, registered

# -- as seed 000 prints it -------------------------------------------------------------------------


async def test_a_worker_as_the_seed_has_it(served: Api) -> None:
    answer = await served.post(f"{WORKERS}/register", {"capabilities": ["gpu"], "capacity": 5})
    assert answer["poll_interval_ms"] == 1000
    assert answer["heartbeat_interval_ms"] == 30_000
    worker = Worker(served, answer["worker_id"], await served.connect())
    task_id = await served.submit(
        "process_video",
        priority="high",
        parameters={"url": "v.mp4", "n": [1, 2.5, None]},
        required_capabilities=["gpu"],
        timeout_seconds=600,
    )
    (task,) = await worker.poll(3, capabilities=["gpu"])
    assert task == {
        "task_id": task_id,
        "task_type": "process_video",
        "parameters": {"url": "v.mp4", "n": [1, 2.5, None]},
        "timeout_seconds": 600,
        "attempt": 1,
        "trace_id": task_id.replace("-", ""),
        "traceparent": None,
        "scheduled_for": None,
        "scheduled_tz": None,
    }
    assert await worker.told("heartbeat", {"current_load": 3, "status": "active"}) == {
        "acknowledged": True,
        "should_drain": False,
        "cancelled": [],
    }
    (known,) = await served.world.run(served.world.ops.workers())
    assert (known.lease, known.capacity, known.load) == (90.0, 5, 1), "its load is counted"
    body = {"task_id": task_id, "status": "completed", "result": {"frames": 9}}
    assert await worker.told("result", body) == {"acknowledged": True, "status": "completed"}
    stored = await served.world.task(task_id)
    assert (stored.status, stored.result) == (State.COMPLETED, b'{"frames": 9}')
    assert stored.started_at is not None


async def test_capabilities_and_capacity_of_the_poll_govern(served: Api) -> None:
    worker = await registered(served, capabilities=["gpu"], capacity=1)
    for needs in ([], ["gpu"], ["gpu"], ["disk"]):
        await served.submit(required_capabilities=needs)
    assert len(await worker.poll(9, capabilities=[])) == 1
    assert len(await worker.poll(1)) == 1
    assert len(await worker.poll(9, capabilities=["gpu", "disk"])) == 2


async def test_queues_and_types_are_those_of_the_registration(served: Api) -> None:
    worker = await registered(served, queues=["mail"], types=["send", "sort"])
    await served.submit("send")
    await served.submit("burn", queue="mail")
    wanted = await served.submit("send", queue="mail")
    assert [task["task_id"] for task in await worker.poll(9)] == [wanted]


# -- results ---------------------------------------------------------------------------------------


async def test_a_failure_is_decided_by_the_core(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit(max_retries=1)
    await worker.poll()
    error = {"message": "no\u0000 disk", "code": "EIO", "details": {"disk": 7}}
    answer = told(await worker.result(task_id, status="failed", error=error), 200)
    assert answer["status"] == "retrying"
    stored = await served.world.task(task_id)
    assert stored.error is not None
    assert (stored.error.message, stored.error.code) == ("no\u0000 disk", "EIO")
    assert stored.error.traceback == '{"disk": 7}'
    assert stored.retry_count == 1
    await served.world.advance(3600)
    (again,) = await worker.poll()
    assert again["attempt"] == 2
    answer = told(await worker.result(task_id, status="failed"), 200)
    assert answer["status"] == "dead_letter"


async def test_a_failure_for_good(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit()
    await worker.poll()
    error = {"message": "never", "retriable": False}
    answer = told(await worker.result(task_id, attempt=1, status="failed", error=error), 200)
    assert answer["status"] == "failed"


async def test_saying_the_same_again_is_no_mistake_but_another_outcome_is(served: Api) -> None:
    worker = await registered(served)
    done, failed = await served.submit(), await served.submit()
    await worker.poll(2)
    for attempt in ({}, {"attempt": 1}, {}):
        answer = told(await worker.result(done, result=1, **attempt), 200)
        assert answer == {"acknowledged": True, "status": "completed"}
        assert told(await worker.result(failed, status="failed", **attempt), 200)
    refused(await worker.result(done, status="failed"), 409, "lease_lost")
    for attempt in ({}, {"attempt": 1}):
        for other in (2, True, None):
            refused(await worker.result(done, result=other, **attempt), 409, "lease_lost")
    refused(await worker.result(failed), 409, "lease_lost")
    assert (await served.world.task(done)).result == b"1"
    assert (await served.world.task(failed)).retry_count == 1


async def test_only_the_holder_may_speak_of_a_task(served: Api) -> None:
    mine, other = await registered(served), await registered(served)
    task_id = await served.submit()
    await mine.poll()
    for call, body in (
        ("result", {"status": "completed"}),
        ("start", {}),
        ("progress", {"progress_percent": 5}),
    ):
        for attempt in ({}, {"attempt": 1}):
            reply = await other.ask(call, {"task_id": task_id, **attempt, **body})
            refused(reply, 409, "lease_lost")
        refused(await mine.ask(call, {"task_id": task_id, "attempt": 2, **body}), 409, "lease_lost")
        for unknown in ("01890a5d-ac96-774b-bcce-b302099a8057", "nonsense", ""):
            refused(await mine.ask(call, {"task_id": unknown, **body}), 404, "task_not_found")
    assert await served.world.state(task_id) is State.EXECUTING


async def test_a_result_too_large_changes_nothing(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit()
    await worker.poll()
    refused(await worker.result(task_id, result="x" * (1024 * 1024 + 1)), 413, "result_too_large")
    assert await served.world.state(task_id) is State.EXECUTING
    told(await worker.result(task_id, result="x" * (1024 * 1024 - 2)), 200)


async def test_a_lost_worker_comes_too_late(served: Api) -> None:
    worker, other = await registered(served), await registered(served)
    task_id = await served.submit()
    await worker.poll()
    await begun(served, task_id)
    await served.world.advance(91)
    await served.world.reap()
    refused(await worker.result(task_id), 409, "lease_lost")
    refused(await worker.ask("poll", {}), 409, "worker_gone")
    refused(await worker.ask("heartbeat", {}), 409, "worker_gone")
    again = await registered(served)
    (task,) = await again.poll()
    assert (task["task_id"], task["attempt"]) == (task_id, 2)
    assert (await served.world.task(task_id)).retry_count == 1, "it had begun"
    refused(await other.ask("poll", {}), 409, "worker_gone")


async def test_a_task_that_takes_too_long_is_taken_away(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit(timeout_seconds=10)
    await worker.poll()
    await begun(served, task_id)
    await served.world.advance(11)
    await worker.told("heartbeat", {})
    await served.world.reap()
    assert (await worker.told("heartbeat", {}))["cancelled"] == [task_id]
    refused(await worker.result(task_id), 409, "lease_lost")
    assert (await worker.told("heartbeat", {}))["cancelled"] == []


async def test_start_and_progress(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit(timeout_seconds=10)
    await worker.poll()
    await begun(served, task_id)
    await served.world.advance(8)
    assert await worker.told("start", {"task_id": task_id}) == {"acknowledged": True}
    await served.world.advance(8)
    assert await served.world.reap() == [], "its time counts from the start"
    body = {"task_id": task_id, "progress_percent": 45.5, "status_message": "half\u0000 way"}
    assert await worker.told("progress", body) == {"acknowledged": True}
    progress = (await served.world.task(task_id)).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (45.5, "half\u0000 way")


async def test_a_worker_that_reports_starts_loses_what_it_does_not_start(served: Api) -> None:
    """A poll without a request id, whose response got lost: nobody repeats it."""
    answer = await served.post(f"{WORKERS}/register", {"reports_start": True})
    assert answer["start_within_seconds"] == 30.0
    worker = Worker(served, answer["worker_id"], await served.connect())
    task_id = await served.submit(max_retries=0)
    assert len(await worker.poll()) == 1
    assert (await served.world.task(task_id)).started_at is None
    await served.world.advance(29)
    await worker.told("heartbeat", {})
    assert await served.world.reap() == []
    await served.world.advance(2)
    assert await served.world.reap() == [Verdict.APPLIED]
    task = await served.world.task(task_id)
    assert (task.status, task.retry_count) == (State.QUEUED, 0)
    for call in ("start", "progress"):
        refused(await worker.ask(call, {"task_id": task_id}), 409, "lease_lost")
        refused(await worker.ask(call, {"task_id": task_id, "attempt": 1}), 409, "lease_lost")
    refused(await worker.result(task_id), 409, "lease_lost")
    refused(await worker.result(task_id, attempt=1), 409, "lease_lost")
    other = await registered(served)
    assert [task["attempt"] for task in await other.poll()] == [2]
    assert (await other.result(task_id)).status == 200


async def test_what_is_started_in_time_is_kept(served: Api) -> None:
    worker = await registered(served, reports_start=True)
    task_id, quick = await served.submit(timeout_seconds=300), await served.submit()
    await worker.poll(2)
    await served.world.advance(20)
    await worker.told("start", {"task_id": task_id, "attempt": 1})
    assert (await worker.result(quick)).status == 200, "a result shows that it was started"
    await served.world.advance(200)
    await worker.told("heartbeat", {})
    assert await served.world.reap() == []
    assert (await worker.result(task_id)).status == 200


async def test_a_worker_that_never_reports_a_start_keeps_its_tasks(served: Api) -> None:
    """It registers and polls as document 000 prints it: there is no call `start` in it."""
    answer = await served.post(f"{WORKERS}/register", {"capabilities": ["gpu"], "capacity": 5})
    assert sorted(answer) == ["heartbeat_interval_ms", "poll_interval_ms", "worker_id"]
    worker = Worker(served, answer["worker_id"], await served.connect())
    task_id = await served.submit()
    assert len(await worker.poll(3, capabilities=["gpu"])) == 1
    await begun(served, task_id)
    await served.world.advance(590)
    await worker.told("heartbeat", {"current_load": 1, "status": "active"})
    assert await served.world.reap() == []
    assert (await worker.result(task_id)).status == 200


async def test_every_server_process_knows_who_reports_starts(served: Api) -> None:
    worker = await registered(served, reports_start=True)
    task_id = await served.submit()
    async with serving(served.world, replace(CALM, start_within=5.0)) as other:
        there = Worker(other, worker.id, await other.connect())
        assert len(await there.poll()) == 1
        await served.world.advance(6)
        assert await served.world.reap() == [], "it has the time of its registration"
        await served.world.advance(25)
        assert await served.world.reap() == [Verdict.APPLIED]
        hasty = await other.post(f"{WORKERS}/register", {"reports_start": True})
        assert hasty["start_within_seconds"] == 5.0
        assert (await served.world.task(task_id)).retry_count == 0


async def test_a_server_without_a_time_to_start(api: Api) -> None:
    async with serving(api.world, replace(CALM, start_within=None)) as patient:
        worker = await registered(patient, reports_start=True)
        task_id = await patient.submit(timeout_seconds=300)
        await worker.poll()
        await begun(patient, task_id)
        await api.world.advance(290)
        await worker.told("heartbeat", {})
        assert await api.world.reap() == []


# -- being told, and leaving -----------------------------------------------------------------------


async def test_a_cancellation_reaches_the_heartbeat(served: Api) -> None:
    worker = await registered(served)
    task_id, other = await served.submit(), await served.submit()
    await worker.poll(2)
    await served.world.run(served.world.ops.cancel([task_id]))
    assert (await worker.told("heartbeat", {"current_load": 2}))["cancelled"] == [task_id]
    refused(await worker.result(task_id), 409, "lease_lost")
    assert (await worker.told("heartbeat", {}))["cancelled"] == [], "its place is free again"
    told(await worker.result(other), 200)


async def test_a_drained_worker_gets_no_more(served: Api) -> None:
    worker = await registered(served)
    await served.world.run(served.world.ops.mark(worker.id, WorkerStatus.DRAINING))
    await served.submit()
    assert (await worker.told("heartbeat", {"status": "active"}))["should_drain"] is True
    assert await worker.poll(wait_seconds=0.1) == []


async def test_an_unhealthy_worker_gets_none_until_it_is_well(served: Api) -> None:
    worker = await registered(served)
    await served.submit()
    health = {"cpu": 0.9, "notes": ["\u0000", {"deep": None}]}
    await worker.told("heartbeat", {"status": "unhealthy", "health": health})
    (known,) = await served.world.run(served.world.ops.workers())
    assert (known.status, known.health) == (WorkerStatus.UNHEALTHY, health)
    assert await worker.poll() == []
    await worker.told("heartbeat", {"status": "active"})
    assert len(await worker.poll()) == 1


async def test_what_is_nested_too_deeply_breaks_nothing(served: Api) -> None:
    worker = await registered(served)
    for levels in (101, 500, 900, 950, 967, 980, 990, 5_000):
        deep = b'{"health":{"a":' + b"[" * levels + b"]" * levels + b"}}"
        assert (await worker.ask("heartbeat", deep)).status == 422
    for levels in (900, 950, 967, 980, 990):
        task_id = await served.submit()
        await worker.poll()
        deep = b"[" * levels + b"]" * levels
        body = b'{"task_id":"%s","status":"completed","result":%s}' % (task_id.encode(), deep)
        assert (await worker.ask("result", body)).status == 422
        body = b'{"task_id":"%s","status":"failed","error":{"details":%s}}'
        assert (await worker.ask("result", body % (task_id.encode(), deep))).status == 422
    for path in ("/api/v1/workers", "/api/v1/queue/stats", "/metrics", "/api/v1/queues"):
        assert (await served.ask("GET", path)).status == 200, path


async def test_health_that_an_earlier_version_stored(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was nested so deeply that no response could hold it."""
    stored = '{"a":' + "[" * 967 + "]" * 967 + "}"
    for engine in ("sqlite", "postgres", "redis"):
        monkeypatch.setattr(f"fairlane.engines.{engine}.leases.stored_health", lambda _: stored)
    worker = await registered(served)
    await worker.told("heartbeat", {"health": {}})
    for path in ("/api/v1/workers", "/api/v1/queue/stats", "/metrics", "/api/v1/queues"):
        assert (await served.ask("GET", path)).status == 200, path
    (known,) = (await served.get("/api/v1/workers"))["workers"]
    assert known["health"] == {"unreadable": "nested more than 100 levels deep"}


async def test_names_in_a_poll(served: Api) -> None:
    worker = await registered(served)
    many = [f"name-{number}" for number in range(1_001)]
    refused(await worker.ask("poll", {"capabilities": many}), 422, "invalid_worker")
    claim = {"request_id": "r"}
    for kind in ("capabilities", "queues", "types"):
        path = f"/internal/workers/{worker.id}/claim"
        answer = await served.ask("POST", path, {**claim, kind: many})
        refused(answer, 422, "invalid_worker")


async def test_what_a_leaving_worker_holds_goes_back_at_no_cost(served: Api) -> None:
    worker = await registered(served)
    ids = {await served.submit() for _ in range(3)}
    done, *_ = await worker.poll(3)
    told(await worker.result(done["task_id"]), 200)
    assert await worker.told("deregister") == {"acknowledged": True, "released": 2}
    refused(await worker.ask("poll", {}), 409, "worker_gone")
    refused(await worker.ask("deregister"), 409, "worker_gone")
    back = [await served.world.task(task_id) for task_id in ids - {done["task_id"]}]
    assert {(task.status, task.retry_count) for task in back} == {(State.QUEUED, 0)}


async def test_every_call_is_a_sign_of_life(served: Api) -> None:
    worker = await registered(served, heartbeat_interval_ms=100)
    task_id = await served.submit()
    await worker.poll()

    async def heard() -> object:
        (known,) = await served.world.run(served.world.ops.workers())
        return known.last_heartbeat

    for call in ("start", "progress", "poll"):
        before = await heard()
        async with asyncio.timeout(SECONDS):
            while await heard() == before:
                await worker.told(call, {"task_id": task_id})
    told(await worker.result(task_id), 200)


async def test_a_repeated_poll_gets_the_same_tasks(served: Api) -> None:
    worker = await registered(served)
    for _ in range(4):
        await served.submit()
    first = await worker.poll(2, request_id="one")
    assert await worker.poll(2, request_id="one") == first
    second = await worker.poll(2, request_id="two")
    assert len({task["task_id"] for task in (*first, *second)}) == 4


# -- bad input, on one engine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("register", {"capacity": 0}),
        ("register", {"capacity": "5"}),
        ("register", {"capabilities": ["white space"]}),
        ("register", {"queues": "mail"}),
        ("register", {"host": "\u0000"}),
        ("register", {"version": "x" * 256}),
        ("register", {"heartbeat_interval_ms": 0}),
        ("register", {"heartbeat_interval_ms": 10**9}),
        ("register", {"reports_start": "yes"}),
        ("register", {"reports_start": None}),
        ("poll", {"available_capacity": 0}),
        ("poll", {"available_capacity": 10**6}),
        ("poll", {"wait_seconds": -1}),
        ("poll", {"wait_seconds": None}),
        ("poll", {"capabilities": ["\u0000"]}),
        ("poll", {"request_id": ""}),
        ("poll", {"request_id": "x" * 256}),
        ("poll", {"request_id": "\u0000"}),
        ("start", {}),
        ("start", {"task_id": "x", "attempt": 0}),
        ("progress", {"task_id": "x", "progress_percent": 101}),
        ("progress", {"task_id": "x", "progress_percent": "5"}),
        ("result", {"task_id": "x"}),
        ("result", {"task_id": "x", "status": "done"}),
        ("result", {"task_id": "x", "status": "completed", "execution_duration_seconds": -1}),
        ("result", {"task_id": "x", "status": "completed", "execution_duration_seconds": 1e300}),
        ("result", {"task_id": "x", "status": "completed", "attempt": 2**31}),
        ("heartbeat", {"current_load": -1}),
        ("heartbeat", {"status": "dead"}),
        ("heartbeat", {"health": "fine"}),
        ("heartbeat", {"health": {"notes": "x" * 5_000}}),
    ],
)
async def test_what_does_not_fit(api: Api, call: str, body: dict[str, Any]) -> None:
    worker = await registered(api)
    path = f"{WORKERS}/register" if call == "register" else f"{WORKERS}/{worker.id}/{call}"
    reply = await api.ask("POST", path, body)
    assert reply.status == 422, reply.body
    assert len(await api.world.run(api.world.ops.workers())) == 1


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        pytest.param(b'"\xff"', 400, "invalid_json", id="utf-8"),
        pytest.param(b"1e999", 422, "invalid_result", id="infinite"),
        pytest.param(b"[" * 101 + b"]" * 101, 422, "invalid_result", id="deep"),
    ],
)
@pytest.mark.parametrize("field", [b'"result":%s', b'"status":"failed","error":{"details":%s}'])
async def test_a_result_that_others_could_not_read(
    api: Api, field: bytes, result: bytes, status: int, code: str
) -> None:
    worker = await registered(api)
    task_id = await api.submit()
    await worker.poll()
    body = b'{"task_id":"%s","status":"completed",%s}' % (task_id.encode(), field % result)
    answer = await worker.ask("result", body)
    refused(answer, status, code)
    if code == "invalid_result":  # the sender learns which of the two it was
        assert (b"error.details" in answer.body) is (b"details" in field)
    assert await api.world.state(task_id) is State.EXECUTING


@pytest.mark.parametrize("plain", [b'1,"owner":"somebody"', b'{"a":', b'"\xff"'])
async def test_a_result_that_looks_compressed_breaks_no_list(served: Api, plain: bytes) -> None:
    worker = await registered(served)
    forged = {"$zstd": b64encode(compress(plain)).decode()}
    ids = [await served.submit() for _ in range(2)]
    await worker.poll(2)
    for call, task_id, wrapped in (
        ("result", ids[0], "%s"),
        ("results", ids[1], '{"results":[%s]}'),
    ):
        report = {"task_id": task_id, "attempt": 1, "status": "completed", "result": forged}
        body = wrapped % json.dumps(report, separators=(",", ":"))
        assert (await worker.ask(call, body.encode())).status == 200
    listed = (await served.get("/api/v1/tasks"))["tasks"]
    assert {task["task_id"]: task["result"] for task in listed} == dict.fromkeys(ids, forged)
    assert [task["owner"] for task in listed] == [None, None]


async def test_what_is_not_known_is_passed_over(api: Api) -> None:
    worker = await registered(api, flavour="vanilla")
    await api.submit()
    assert len(await worker.poll(1, mood="good")) == 1
    assert (await worker.told("heartbeat", {"current_load": 1, "shoe_size": 43}))["acknowledged"]


@pytest.mark.parametrize(
    "worker_id", ["x", "01890a5d-ac96-774b-bcce-b302099a8057", "%00", "a" * 400]
)
async def test_a_worker_that_nobody_registered(api: Api, worker_id: str) -> None:
    for call in ("poll", "heartbeat", "deregister"):
        reply = await api.ask("POST", f"{WORKERS}/{worker_id}/{call}", {})
        refused(reply, 409, "worker_gone")


async def test_nobody_may_act_for_a_worker_that_did_not_come_over_http(api: Api) -> None:
    worker_id = await api.world.worker()
    task_id = await api.submit()
    await api.world.claim(worker_id)
    own = Worker(api, worker_id, await api.connect())
    refused(await own.result(task_id), 409, "worker_gone")
    assert await api.world.state(task_id) is State.EXECUTING
