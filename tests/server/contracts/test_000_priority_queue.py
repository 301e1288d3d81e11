"""Every request and answer that 000 prints, and the rules it states for them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fairlane.core.ids import new_id
from tests.server.contracts.seat import Seat
from tests.server.kit import Api, refused, told
from tests.server.workers import begun

TASKS = "/api/v1/tasks"
VIDEO: dict[str, Any] = {
    "task_type": "process_video",
    "priority": "high",
    "parameters": {"url": "https://example.com/a.mp4"},
    "required_capabilities": ["gpu"],
    "timeout_seconds": 600,
    "idempotency_key": "optional-key",
}
ENTITY = {
    "task_id",
    "priority",
    "effective_priority",
    "status",
    "retry_count",
    "max_retries",
    "created_at",
    "started_at",
    "completed_at",
    "assigned_worker_id",
    "result",
    "error",
    "timeout_seconds",
    "idempotency_key",
    "trace_id",
}
"""The task entity's fields, but for `payload`: its three parts are fields of their own, as the
document's own requests and answers have them."""
PAYLOAD = {"task_type", "parameters", "required_capabilities"}


async def task(api: Api, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.get(f"{TASKS}/{task_id}")
    assert set(found) >= ENTITY | PAYLOAD
    return found


async def video(api: Api, **changes: Any) -> str:
    return await api.submit("process_video", required_capabilities=["gpu"], **changes)


# --- Tasks ----------------------------------------------------------------------------------------


async def test_submission(served: Api) -> None:
    answer = await served.post(TASKS, VIDEO, 201)
    # SPEC section 10 adds fields; section 2: UUIDs of version 7 where the document says 4.
    assert UUID(answer["task_id"]).version == 7
    assert (answer["status"], answer["queue_position"]) == ("queued", 1)
    found = await task(served, answer["task_id"])
    assert {name: found[name] for name in VIDEO} == VIDEO
    assert (found["status"], found["retry_count"]) == ("queued", 0)
    for name in ("started_at", "completed_at", "assigned_worker_id", "result", "error"):
        assert found[name] is None


async def test_positions_count_up(served: Api) -> None:
    for place in range(1, 6):
        video = {**VIDEO, "idempotency_key": f"video-{place}"}
        assert (await served.post(TASKS, video, 201))["queue_position"] == place


async def test_positions_count_what_others_submitted(served: Api) -> None:
    # Estimates, half a second old at the most: a first one that stands still is exact.
    for _ in range(4):
        await served.world.submit("process_video", {}, priority="high")
    assert (await served.post(TASKS, VIDEO, 201))["queue_position"] == 5


async def test_priorities_have_their_terms(served: Api) -> None:
    for priority, retries, timeout in [("high", 5, 300), ("medium", 3, 600), ("low", 2, 900)]:
        found = await task(served, await served.submit(priority=priority))
        assert (found["priority"], found["effective_priority"]) == (priority, priority)
        assert (found["max_retries"], found["timeout_seconds"]) == (retries, timeout)


async def test_status(served: Api, seat: Seat) -> None:
    task_id = (await served.post(TASKS, VIDEO, 201))["task_id"]
    await seat.take(task_id)
    running = await task(served, task_id)
    assert (running["status"], running["result"]) == ("executing", None)
    assert (running["priority"], running["effective_priority"]) == ("high", "high")
    assert running["assigned_worker_id"] == seat.worker_id
    refused(await served.ask("GET", f"{TASKS}/{new_id()}"), 404, "task_not_found")


async def test_cancellation(served: Api, seat: Seat) -> None:
    waiting, running = await video(served, priority="low"), await video(served, priority="high")
    assert [each["task_id"] for each in await seat.poll(1)] == [running]
    for task_id, was_executing in [(waiting, False), (running, True)]:
        answer = told(await served.ask("DELETE", f"{TASKS}/{task_id}"), 200)
        assert (answer["task_id"], answer["status"]) == (task_id, "cancelled")
        assert answer["was_executing"] is was_executing
        assert (await task(served, task_id))["status"] == "cancelled"
        refused(await served.ask("DELETE", f"{TASKS}/{task_id}"), 409, "conflict")
    # Its late result is refused, and nobody is handed it again.
    report = {"task_id": running, "status": "completed", "result": {}}
    refused(await seat.ask("result", report), 409, "lease_lost")
    assert await seat.poll() == []


async def test_statistics(served: Api, seat: Seat) -> None:
    for priority, count in [("high", 2), ("medium", 3), ("low", 1)]:
        for _ in range(count):
            await video(served, priority=priority)
    assert len(await seat.poll(1)) == 1
    await served.world.advance(45)
    stats = await served.get("/api/v1/queue/stats")
    queues, workers = stats["queues"], stats["workers"]
    assert {name: queues[name]["depth"] for name in queues} == {
        "critical": 0,  # SPEC has a fourth
        "high": 1,
        "medium": 3,
        "low": 1,
    }
    for name in ("high", "medium", "low"):
        assert 45 <= queues[name]["oldest_age_seconds"] < 60
    expected = {"active": 1, "draining": 0, "dead": 0, "total_capacity": 5, "used_capacity": 1}
    assert {name: workers[name] for name in expected} == expected
    assert stats["throughput"]["completed_last_minute"] == 0
    assert stats["throughput"]["failed_last_minute"] == 0


# --- Workers --------------------------------------------------------------------------------------


async def test_registration(served: Api) -> None:
    sent = {"capabilities": ["gpu"], "capacity": 5}
    answer = await served.post("/internal/workers/register", sent)
    # SPEC section 7: ids that a store makes, and the document's own terms of life.
    assert answer == {
        "worker_id": answer["worker_id"],
        "poll_interval_ms": 1000,
        "heartbeat_interval_ms": 30_000,
    }
    (worker,) = (await served.get("/api/v1/workers"))["workers"]
    expected = {
        "worker_id": answer["worker_id"],
        "status": "active",
        "current_tasks": [],
        "capacity": 5,
        "current_load": 0,
        "capabilities": ["gpu"],
        "version": "",
    }
    assert {name: worker[name] for name in expected} == expected
    assert worker["last_heartbeat"]


async def test_poll(served: Api, seat: Seat) -> None:
    task_id = (await served.post(TASKS, VIDEO, 201))["task_id"]
    (handed,) = await seat.poll()
    assert handed["task_id"] == task_id
    for name in ("task_type", "parameters", "timeout_seconds"):
        assert handed[name] == VIDEO[name]
    assert handed["trace_id"] == (await task(served, task_id))["trace_id"]
    assert await seat.poll() == []


async def test_a_poll_takes_by_priority_and_then_by_age(served: Api, seat: Seat) -> None:
    names = ["low", "high", "medium", "high", "critical", "low"]
    submitted = [await served.submit(priority=name) for name in names]
    taken = [each["task_id"] for each in await seat.poll(4)]
    assert taken == [submitted[index] for index in (4, 1, 3, 2)]
    assert [each["task_id"] for each in await seat.poll(5)] == [submitted[0], submitted[5]]


async def test_a_poll_takes_only_what_it_can_do(served: Api) -> None:
    task_id = await video(served)
    assert await (await Seat.taken(served, "cpu-intensive")).poll() == []
    await (await Seat.taken(served, "gpu", "cpu-intensive")).take(task_id)


async def test_result(served: Api, seat: Seat) -> None:
    task_id = await video(served)
    await seat.take(task_id)
    report = {"task_id": task_id, "status": "completed", "result": {"frames": 250}}
    answer = told(await seat.ask("result", report), 200)
    assert answer == {"acknowledged": True, "status": "completed"}
    done = await task(served, task_id)
    assert (done["status"], done["result"], done["error"]) == ("completed", {"frames": 250}, None)
    assert done["completed_at"] is not None


async def test_heartbeat(served: Api, seat: Seat) -> None:
    answer = told(await seat.ask("heartbeat", {"current_load": 3, "status": "active"}), 200)
    assert answer == {"acknowledged": True, "should_drain": False, "cancelled": []}
    told(await seat.ask("heartbeat", {"current_load": 0, "status": "draining"}), 200)
    (worker,) = (await served.get("/api/v1/workers"))["workers"]
    assert worker["status"] == "draining"
    await video(served)
    assert await seat.poll() == []


async def test_three_missed_heartbeats_are_death(served: Api, seat: Seat) -> None:
    task_id = await video(served)
    await seat.take(task_id)
    await begun(served, task_id)
    await served.world.advance(89)
    assert await served.world.reap() == []
    told(await seat.ask("heartbeat", {"current_load": 1}), 200)
    await served.world.advance(91)
    await served.world.reap()
    lost = await task(served, task_id)
    assert (lost["status"], lost["retry_count"], lost["assigned_worker_id"]) == ("queued", 1, None)
    assert (await served.get("/api/v1/queue/stats"))["workers"]["dead"] == 1
    report = {"task_id": task_id, "status": "completed", "result": {}}
    refused(await seat.ask("result", report), 409, "lease_lost")
    await (await Seat.taken(served, "gpu")).take(task_id)


# --- Idempotency, retries, dead letters, aging ----------------------------------------------------


async def test_idempotency(served: Api) -> None:
    first = await served.post(TASKS, VIDEO, 201)
    again = await served.ask("POST", TASKS, VIDEO)
    assert told(again, 200)["task_id"] == first["task_id"]
    # SPEC section 6: another task under the same key is refused, not swallowed.
    refused(
        await served.ask("POST", TASKS, {**VIDEO, "parameters": {}}), 422, "idempotency_conflict"
    )
    await served.world.advance(86_401)
    later = await served.post(TASKS, VIDEO, 201)
    assert later["task_id"] != first["task_id"]


async def test_retries_are_counted_and_end_in_the_dead_letters(served: Api) -> None:
    task_id = await video(served, priority="low")
    seat = await Seat.taken(served, "gpu")
    for count in (1, 2):
        await seat.fail(task_id)
        waiting = await task(served, task_id)
        assert (waiting["status"], waiting["retry_count"]) == ("retrying", count)
        assert waiting["error"]["message"] == "out of paper"
        assert waiting["error"]["retriable"] is True
        assert waiting["priority"] == "low"
        await served.world.advance(5)
    await seat.fail(task_id)
    dead = await task(served, task_id)
    # max_retries of `low` is 2: a third failure exceeds it.
    assert (dead["status"], dead["retry_count"]) == ("dead_letter", 3)
    assert dead["error"]["reason"] == "max_retries_exceeded"
    (letter,) = (await served.get("/api/v1/dlq"))["tasks"]
    assert letter["task_id"] == task_id
    assert (await served.get("/api/v1/queue/stats"))["dlq_size"] == 1


async def test_a_timeout_is_a_retry_with_more_time(served: Api) -> None:
    task_id = await video(served, timeout_seconds=60)
    seat = await Seat.taken(served, "gpu")
    await seat.take(task_id)
    await begun(served, task_id)
    await served.world.advance(61)
    await served.world.reap()
    late = await task(served, task_id)
    assert (late["retry_count"], late["timeout_seconds"]) == (1, 90)


async def test_what_is_not_retriable_fails_at_once(served: Api, seat: Seat) -> None:
    task_id = await video(served)
    await seat.fail(task_id, retriable=False)
    failed = await task(served, task_id)
    assert (failed["status"], failed["retry_count"]) == ("failed", 1)


async def test_a_dead_letter_is_replayed_with_its_retries_reset(served: Api, seat: Seat) -> None:
    task_id = await video(served, max_retries=0)
    await seat.fail(task_id)
    answer = await served.post(f"/api/v1/dlq/{task_id}/replay")
    assert (answer["task_id"], answer["status"]) == (task_id, "queued")
    again = await task(served, task_id)
    assert (again["retry_count"], again["completed_at"]) == (0, None)
    assert (await served.get("/api/v1/dlq"))["tasks"] == []
    await seat.complete(task_id)


async def test_waiting_raises_priority(served: Api) -> None:
    low, medium = await served.submit(priority="low"), await served.submit(priority="medium")

    async def levels() -> tuple[str, str]:
        seen = [await task(served, each) for each in (low, medium)]
        assert [each["priority"] for each in seen] == ["low", "medium"]
        return seen[0]["effective_priority"], seen[1]["effective_priority"]

    assert await levels() == ("low", "medium")
    await served.world.advance(601)
    assert await levels() == ("medium", "medium")
    await served.world.advance(600)
    assert await levels() == ("medium", "high")
    # The longest wait for any task: 30 minutes.
    await served.world.advance(600)
    assert await levels() == ("high", "high")
    newcomer = await served.submit(priority="high")
    seat = await Seat.taken(served)
    assert [each["task_id"] for each in await seat.poll(3)] == [low, medium, newcomer]
