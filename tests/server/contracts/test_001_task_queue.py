"""Every request and answer that 001 prints for `/api/tasks`, and the errors it lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlane.core.ids import new_id
from tests.server.contracts.seat import Seat
from tests.server.kit import Api, refused, told

TASKS = "/api/tasks"
EMAIL: dict[str, Any] = {
    "type": "send_email",
    "payload": {"to": "user@example.com", "subject": "Welcome"},
    "options": {"maxAttempts": 3, "runAfter": "2025-01-15T10:00:00Z"},
}
FIELDS = {
    "id",
    "type",
    "payload",
    "status",
    "attempts",
    "maxAttempts",
    "lastAttemptAt",
    "nextRetryAt",
    "result",
    "error",
    "runAfter",
    "createdAt",
    "updatedAt",
    "completedAt",
}
"""Of a task, as section 3.2 prints it."""


async def create(api: Api, type: str = "send_email", **options: Any) -> str:
    sent = {"type": type, "payload": {"to": "user@example.com"}, "options": options}
    task_id: str = (await api.post(TASKS, sent, 201))["id"]
    return task_id


async def task(api: Api, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.get(f"{TASKS}/{task_id}")
    assert set(found) == FIELDS
    return found


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


def ids(answer: dict[str, Any]) -> list[str]:
    return [each["id"] for each in answer["tasks"]]


# --- POST /api/tasks ------------------------------------------------------------------------------


async def test_create(served: Api) -> None:
    created = await served.post(TASKS, EMAIL, 201)
    assert set(created) == {"id", "type", "status", "createdAt"}
    assert (created["type"], created["status"]) == ("send_email", "pending")
    moment(created["createdAt"])
    found = await task(served, created["id"])
    assert found["payload"] == EMAIL["payload"]
    assert found["maxAttempts"] == 3
    assert moment(found["runAfter"]) == moment(EMAIL["options"]["runAfter"])


async def test_options_are_optional(served: Api, seat: Seat) -> None:
    sent = {"type": "send_email", "payload": {}}
    found = await task(served, (await served.post(TASKS, sent, 201))["id"])
    assert (found["maxAttempts"], found["runAfter"]) == (3, None)
    await seat.take(found["id"])


async def test_the_time_limit_is_that_of_the_type_or_of_001(served: Api, seat: Seat) -> None:
    """No request of 001 names a time limit, so one that is set for the type counts."""
    one = await create(served)
    assert (await seat.take(one))["timeout_seconds"] == 300.0
    told(await served.ask("PATCH", "/api/v1/types/send_email", {"timeout_seconds": 40}), 200)
    two = await create(served)
    assert (await seat.take(two))["timeout_seconds"] == 40.0
    assert (await served.get(f"/api/v1/tasks/{two}"))["timeout_seconds"] == 40.0


async def test_run_after_is_waited_for(served: Api, seat: Seat) -> None:
    due = datetime.now(UTC) + timedelta(seconds=60)
    task_id = await create(served, runAfter=due.isoformat())
    assert (await task(served, task_id))["status"] == "pending"
    assert await seat.poll() == []
    await served.world.advance(61)
    await seat.take(task_id)


PAYLOADS = [
    b'{"a": 1.10, "b": 12345678901234567890123, "c": 1e2, "d": -0.0, "e": 5e-324}',
    b"[1, 2.50]",
    b'"text"',
    b"null",
    b"12345678901234567890123",
    b'{"$value": 1}',
]


async def test_any_json_is_a_payload_and_comes_back_to_the_letter(served: Api, seat: Seat) -> None:
    for payload in PAYLOADS:
        created = await served.post(TASKS, b'{"type": "t", "payload": %s}' % payload, 201)
        await seat.complete(created["id"], payload)
        told = (await served.ask("GET", f"{TASKS}/{created['id']}")).body
        assert b'"payload":%s,' % payload in told
        assert b'"result":%s,' % payload in told


BAD = [
    {"payload": {}},
    {"type": "send_email"},
    {"type": "", "payload": {}},
    {"type": "a b", "payload": {}},
    {"type": "x" * 256, "payload": {}},
    {"type": 5, "payload": {}},
    {**EMAIL, "options": {"maxAttempts": 0}},
    {**EMAIL, "options": {"maxAttempts": "3"}},
    {**EMAIL, "options": {"runAfter": "tomorrow"}},
    {**EMAIL, "options": {"runAfter": "2025-01-15T10:00:00"}},
    [EMAIL],
]


async def test_invalid_type_or_payload(served: Api) -> None:
    bodies = [json.dumps(sent).encode() for sent in BAD]
    for body in (*bodies, b'{"type": "t", "payload": {', b'{"type": "t", "payload": NaN}'):
        reply = await served.ask("POST", TASKS, body)
        refused(reply, 400, reply.code)
    assert (await served.get(TASKS))["total"] == 0


# --- GET /api/tasks/:id ---------------------------------------------------------------------------


async def test_a_task_through_its_life(served: Api, seat: Seat) -> None:
    task_id = await create(served)
    new = await task(served, task_id)
    assert (new["status"], new["attempts"], new["lastAttemptAt"]) == ("pending", 0, None)
    await seat.take(task_id)
    running = await task(served, task_id)
    assert (running["status"], running["attempts"]) == ("processing", 1)
    report = {"task_id": task_id, "status": "completed", "result": {"messageId": "abc123"}}
    told(await seat.ask("result", report), 200)
    done = await task(served, task_id)
    assert done["payload"] == {"to": "user@example.com"}
    assert (done["status"], done["attempts"]) == ("completed", 1)
    assert (done["result"], done["error"]) == ({"messageId": "abc123"}, None)
    assert moment(done["createdAt"]) <= moment(done["lastAttemptAt"]) <= moment(done["completedAt"])


async def test_a_failed_task_waits_and_then_fails_for_good(served: Api, seat: Seat) -> None:
    task_id = await create(served, maxAttempts=2)
    await seat.fail(task_id)
    failed = await task(served, task_id)
    assert (failed["status"], failed["attempts"], failed["completedAt"]) == ("failed", 1, None)
    assert failed["error"] == "out of paper"
    wait = moment(failed["nextRetryAt"]) - moment(failed["updatedAt"])
    assert timedelta(seconds=8) <= wait <= timedelta(seconds=12)
    assert await seat.poll() == []
    await served.world.advance(13)
    await seat.fail(task_id)
    dead = await task(served, task_id)
    assert (dead["status"], dead["attempts"], dead["nextRetryAt"]) == ("failed", 2, None)
    moment(dead["completedAt"])


async def test_a_task_that_does_not_exist(served: Api) -> None:
    for task_id in (new_id(), "550e8400-e29b-41d4-a716-446655440000", "no-id"):
        address = f"{TASKS}/{task_id}"
        for method, path in [
            ("GET", address),
            ("DELETE", address),
            ("POST", f"{address}/retry"),
            ("POST", f"{address}/cancel"),
        ]:
            refused(await served.ask(method, path), 404, "task_not_found")


# --- GET /api/tasks -------------------------------------------------------------------------------


async def test_list(served: Api, seat: Seat) -> None:
    failed = await create(served)
    await seat.fail(failed)
    done = await create(served, "process_image")
    await seat.complete(done)
    waiting = await create(served)
    everything = await served.get(TASKS)
    assert set(everything) == {"tasks", "total", "limit", "offset"}
    assert (everything["total"], everything["limit"], everything["offset"]) == (3, 50, 0)
    assert ids(everything) == [waiting, done, failed]
    assert all(set(each) == FIELDS for each in everything["tasks"])
    assert ids(await served.get(TASKS, type="send_email")) == [waiting, failed]
    assert ids(await served.get(TASKS, status="completed")) == [done]
    both = await served.get(TASKS, status=["failed", "pending"])
    assert (ids(both), both["total"]) == ([waiting, failed], 2)
    assert ids(await served.get(TASKS, type="send_email", status="pending")) == [waiting]
    assert await served.get(TASKS, type="unheard-of") == {
        "tasks": [],
        "total": 0,
        "limit": 50,
        "offset": 0,
    }


async def test_pages(served: Api) -> None:
    tasks = [await create(served) for _ in range(5)][::-1]
    page = await served.get(TASKS, limit=2, offset=1)
    assert (ids(page), page["total"]) == (tasks[1:3], 5)
    assert (page["limit"], page["offset"]) == (2, 1)
    assert ids(await served.get(TASKS, limit=100, offset=4)) == tasks[4:]
    assert await served.get(TASKS, offset=5) == {"tasks": [], "total": 5, "limit": 50, "offset": 5}


async def test_a_list_that_cannot_be(served: Api) -> None:
    for query in ("limit=0", "limit=101", "limit=x", "offset=-1", "status=unheard-of", "status="):
        reply = await served.ask("GET", f"{TASKS}?{query}")
        refused(reply, 400, reply.code)


# --- POST /api/tasks/:id/retry and cancel, DELETE /api/tasks/:id ----------------------------------


async def test_retry(served: Api, seat: Seat) -> None:
    task_id = await create(served, maxAttempts=1)
    await seat.fail(task_id)
    answer = await served.post(f"{TASKS}/{task_id}/retry")
    assert answer == {"id": task_id, "status": "pending", "attempts": 0, "nextRetryAt": None}
    again = await task(served, task_id)
    assert (again["status"], again["attempts"], again["completedAt"]) == ("pending", 0, None)
    await seat.take(task_id)
    assert (await task(served, task_id))["attempts"] == 1


async def test_retry_does_not_wait(served: Api, seat: Seat) -> None:
    task_id = await create(served)
    await seat.fail(task_id)
    assert (await served.post(f"{TASKS}/{task_id}/retry"))["attempts"] == 0
    await seat.take(task_id)


async def test_only_a_failed_task_is_retried(served: Api, seat: Seat) -> None:
    task_id = await create(served)
    retry = f"{TASKS}/{task_id}/retry"
    refused(await served.ask("POST", retry), 400, "wrong_state")
    await seat.take(task_id)
    refused(await served.ask("POST", retry), 400, "wrong_state")
    sent = {"task_id": task_id, "status": "completed", "result": 1}
    told(await seat.ask("result", sent), 200)
    refused(await served.ask("POST", retry), 400, "wrong_state")
    assert (await task(served, task_id))["result"] == 1


async def test_cancel(served: Api) -> None:
    # 001 has an address for it (section 7.2) but prints no answer: it is the task.
    task_id = await create(served)
    assert (await served.post(f"{TASKS}/{task_id}/cancel"))["status"] == "cancelled"
    refused(await served.ask("POST", f"{TASKS}/{task_id}/cancel"), 400, "wrong_state")


async def test_delete(served: Api, seat: Seat) -> None:
    done, failed = await create(served), await create(served, maxAttempts=1)
    for task_id in (done, failed):
        refused(await served.ask("DELETE", f"{TASKS}/{task_id}"), 400, "wrong_state")
    assert [each["task_id"] for each in await seat.poll()] == [done, failed]
    for task_id in (done, failed):
        refused(await served.ask("DELETE", f"{TASKS}/{task_id}"), 400, "wrong_state")
    for task_id, status in ((done, "completed"), (failed, "failed")):
        told(await seat.ask("result", {"task_id": task_id, "status": status}), 200)
        reply = await served.ask("DELETE", f"{TASKS}/{task_id}")
        assert (reply.status, reply.body) == (204, b"")
        refused(await served.ask("GET", f"{TASKS}/{task_id}"), 404, "task_not_found")


async def test_a_task_that_waits_for_its_retry_can_be_deleted(served: Api, seat: Seat) -> None:
    # SPEC section 1: 001's `failed` is retrying as well, and its delete accepts that.
    task_id = await create(served)
    await seat.fail(task_id)
    assert (await served.ask("DELETE", f"{TASKS}/{task_id}")).status == 204


# --- Statistics, control, cleanup -----------------------------------------------------------------


async def test_stats(served: Api, seat: Seat) -> None:
    await seat.complete(await create(served))
    await seat.fail(await create(served, maxAttempts=1))
    await seat.fail(await create(served, "process_image"))
    running = await create(served, "process_image")
    await seat.take(running)
    await create(served)
    stats = await served.get(f"{TASKS}/stats")
    # `cancelled` is SPEC's: 001 has no cancellation.
    assert stats.pop("cancelled") == 0
    assert stats.pop("processingRate") == 1  # of section 6.3, in tasks an hour
    by_type = stats.pop("byType")
    assert stats == {"pending": 1, "processing": 1, "completed": 1, "failed": 2}
    assert set(by_type) == {"send_email", "process_image"}
    email = by_type["send_email"]
    assert (email["pending"], email["completed"], email["failed"]) == (1, 1, 1)


async def test_pause_and_resume(served: Api, seat: Seat) -> None:
    task_id = await create(served)
    assert await served.post(f"{TASKS}/pause") == {"paused": True}
    assert await served.post(f"{TASKS}/pause", {}) == {"paused": True}
    assert await seat.poll() == []
    assert (await task(served, task_id))["status"] == "pending"
    assert await served.post(f"{TASKS}/resume") == {"paused": False}
    await seat.take(task_id)


async def test_rate_limit(served: Api, seat: Seat) -> None:
    for _ in range(12):
        await create(served)
    limit = f"{TASKS}/rate-limit"
    assert await served.post(limit, {"tasksPerSecond": 10}) == {"tasksPerSecond": 10}
    assert len(await seat.poll(12)) == 10
    assert await served.post(limit, {"tasksPerSecond": 0.5}) == {"tasksPerSecond": 0.5}
    # 0 = unlimited.
    assert await served.post(limit, {"tasksPerSecond": 0}) == {"tasksPerSecond": 0}
    assert len(await seat.poll(12)) == 2
    for sent in ({"tasksPerSecond": -1}, {"tasksPerSecond": "10"}, {}):
        reply = await served.ask("POST", limit, sent)
        refused(reply, 400, reply.code)


async def test_cleanup(served: Api, seat: Seat) -> None:
    old = await create(served)
    await seat.complete(old)
    failed = await create(served, maxAttempts=1)
    await seat.fail(failed)
    between = moment((await task(served, old))["completedAt"]) + timedelta(seconds=30)
    await served.world.advance(60)
    new = await create(served)
    await seat.complete(new)
    stamp = between.isoformat().replace("+00:00", "Z")
    told_so = told(await served.ask("DELETE", f"{TASKS}?olderThan={stamp}"), 200)
    assert told_so == {"deleted": 1}
    assert ids(await served.get(TASKS)) == [new, failed]


async def test_cleanup_up_to_no_time(served: Api, seat: Seat) -> None:
    task_id = await create(served)
    await seat.complete(task_id)
    for query in ("", "?olderThan=", "?olderThan=yesterday", "?olderThan=2025-02-30T00:00:00Z"):
        reply = await served.ask("DELETE", f"{TASKS}{query}")
        refused(reply, 400, reply.code)
    await task(served, task_id)
