"""Workers, statistics and health over HTTP."""

from __future__ import annotations

import pytest

from fairlane import __version__, engines
from fairlane.core.model import WorkerStatus
from fairlane.core.outcomes import Completed
from tests.fixtures.servers import redis
from tests.fixtures.stores import World
from tests.server.kit import Api, refused, serving, told
from tests.server.security.kit import bearer, new_token

WORKERS = "/api/v1/workers"


async def test_workers_are_shown_and_drained(served: Api) -> None:
    worker_id = await served.world.worker(
        capacity=3, capabilities=frozenset({"b", "a"}), queues=frozenset({"q"}), host="h:1"
    )
    task_id = await served.submit(queue="q")
    await served.world.claim_one(worker_id, queues=frozenset({"q"}))
    (worker,) = (await served.get(WORKERS))["workers"]
    assert await served.get(f"{WORKERS}/{worker_id}") == worker
    assert worker.pop("last_heartbeat") >= worker.pop("registered_at")
    assert worker == {
        "worker_id": worker_id,
        "status": "active",
        "current_tasks": [task_id],
        "capacity": 3,
        "current_load": 1,
        "capabilities": ["a", "b"],
        "queues": ["q"],
        "types": None,
        "version": "",
        "host": "h:1",
        "health": None,
        "lease_seconds": 30.0,
        "start_within_seconds": None,
        "held_back": [],
    }
    drained = {"worker_id": worker_id, "status": "draining"}
    assert await served.post(f"{WORKERS}/{worker_id}/drain") == drained
    (found,) = await served.world.run(served.world.ops.workers())
    assert found.status is WorkerStatus.DRAINING


async def test_workers_that_are_not_there(served: Api) -> None:
    for name in ("unknown", "%00", "a%20b", "x" * 300, "%F0%9F%9A%80"):
        refused(await served.ask("GET", f"{WORKERS}/{name}"), 404, "worker_not_found")
        refused(await served.ask("POST", f"{WORKERS}/{name}/drain"), 404, "worker_not_found")


async def test_the_store_at_a_glance_and_over_time(served: Api) -> None:
    world = served.world
    await served.submit(priority="high")
    await served.submit("b", priority=0)
    worker = await world.worker(capacity=7)
    await world.settle(await world.claim_one(worker), Completed(b"1"), seconds=2.0)
    stats = await served.get("/api/v1/queue/stats")
    assert stats.keys() == {
        "queues",
        "workers",
        "throughput",
        "by_status",
        "by_type",
        "dlq_size",
        "p50_age_seconds",
        "p95_age_seconds",
        "recovery",
        "unserved",
    }
    assert stats["queues"].keys() == {"critical", "high", "medium", "low"}
    assert stats["queues"]["low"]["depth"] == 1
    assert stats["queues"]["low"].keys() == {"depth", "oldest_age_seconds"}
    assert stats["workers"] == {
        "active": 1,
        "draining": 0,
        "unhealthy": 0,
        "dead": 0,
        "total_capacity": 7,
        "used_capacity": 0,
    }
    assert stats["throughput"] == {
        "submitted_last_minute": 2,
        "completed_last_minute": 1,
        "failed_last_minute": 0,
        "avg_task_duration_seconds": 2.0,
        "completed_last_hour": 1,
    }
    assert stats["by_status"]["completed"] == stats["by_type"]["work"]["completed"] == 1
    assert set(stats["recovery"].values()) == {0}
    history = "/api/v1/stats/history"
    fresh = await served.get(history)
    assert fresh["samples"] == []
    assert await world.run(world.ops.sample())
    await world.advance(60)
    assert await world.run(world.ops.sample())
    one, two = (await served.get(history))["samples"]
    assert {**fresh["current"], "timestamp": ""} == {**one, "timestamp": ""}
    assert (one["submitted"], one["completed"], one["execution_seconds"]) == (2, 1, 2.0)
    assert one["depths"] == {"low": 1, "medium": 0, "high": 0, "critical": 0}
    assert (await served.get(history, since=two["timestamp"]))["samples"] == [two]
    assert (await served.get(history, limit=1))["samples"] == [one]


@pytest.mark.parametrize(
    "query", ["since=now", "since=2026-01-01T00:00:00", "limit=0", "limit=10001", "x=1", "since="]
)
async def test_stretches_of_time_that_do_not_fit(api: Api, query: str) -> None:
    refused(await api.ask("GET", f"/api/v1/stats/history?{query}"), 422, "invalid_request")


async def test_ready(served: Api) -> None:
    ready = await served.get("/readyz")
    assert (ready["status"], ready["version"]) == ("ready", __version__)
    durability = await served.world.backend.driver.durability()
    assert ready["durability"]["engine"] == durability.engine
    assert ready["durability"]["settings"]
    assert isinstance(ready["durability"]["warnings"], list)
    for path in ("/healthz", "/readyz"):
        head = await served.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")


async def test_ready_tells_strangers_no_more_than_that(served: Api) -> None:
    _, secret = await new_token(served.world, "submit")
    assert await served.get("/readyz") == {"status": "ready"}
    for wrong in ("fl_" + "x" * 43, "x"):
        reply = await served.ask("GET", "/readyz", **bearer(wrong))
        assert (reply.status, reply.body) == (200, b'{"status":"ready"}')
    known = told(await served.ask("GET", "/readyz", **bearer(secret)), 200)
    assert known["version"] == __version__
    assert known["durability"]["settings"]


async def test_a_server_whose_store_is_away_lives_but_is_not_ready() -> None:
    with redis("redis") as server:
        world = World(engines.open(server.url), server.url, {})
        await world.run(world.ops.migrate())
        async with serving(world) as api:
            assert (await api.get("/readyz"))["status"] == "ready"
            server.kill()
            answer = await api.ask("GET", "/readyz")
            refused(answer, 503, "store_unavailable")
            assert answer.headers["retry-after"] == "1"
            assert await api.get("/healthz") == {"status": "ok"}
        await world.close()
