"""Metrics and backlogs over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.server.config import ServerConfig
from tests.server.conftest import api, served
from tests.server.kit import Api, refused, serving
from tests.server.security.kit import until
from tests.telemetry.kit import Scraped

__all__ = ["api", "served"]


async def scrape(api: Api) -> Scraped:
    reply = await api.ask("GET", "/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scraped(reply.body.decode())


async def test_every_server_tells_the_same(served: Api) -> None:
    world = served.world
    for priority in ("high", "medium", "medium"):
        await served.submit("mail", priority=priority)
    worker = await world.worker()
    await world.claim_and_settle(worker)
    await world.claim_and_settle(worker, Failed(TaskError("x")))
    async with serving(world) as other:
        first, second = await scrape(served), await scrape(other)
    assert first.counters() == second.counters()
    assert first("taskqueue_tasks_submitted_total", type="mail", priority="normal") == 2
    assert first("taskqueue_tasks_submitted_total", type="mail", priority="high") == 1
    assert first("taskqueue_tasks_completed_total", type="mail", status="completed") == 1
    assert first("task_retries_total", priority="medium", reason="error") == 1
    assert first("task_duration_seconds_count", priority="high", status="completed") == 1
    assert first("queue_depth", priority="medium") == 1
    assert first("workers_total", status="active") == 1


async def test_the_backlog_of_a_queue(served: Api) -> None:
    world = served.world
    for _ in range(3):
        await served.submit(queue="mails")
    await served.submit(queue="mails", delay_seconds=60)
    await served.submit(queue="others")
    await world.claim(await world.worker(queues=frozenset({"mails"})), 1)
    address = "/api/v1/queues/mails/backlog"
    full = {"queue": "mails", "backlog": 3, "queued": 2, "executing": 1, "paused": False}
    assert await served.get(address) == full
    await served.post("/api/v1/queues/mails/pause")
    assert await served.get(address) == {**full, "backlog": 1, "paused": True}


async def test_the_backlog_of_a_capability(served: Api) -> None:
    """So that machines with a GPU come and go with the work for them."""
    world = served.world
    for queue in ("mails", "films", "films"):
        await served.submit(queue=queue, required_capabilities=["gpu"])
    await served.submit(queue="films", required_capabilities=["gpu", "ssd"])
    await served.submit(queue="films")
    worker = await world.worker()
    await world.claim(worker, 1, capabilities=frozenset({"gpu"}))
    address = "/api/v1/capabilities/gpu/backlog"
    full = {"capability": "gpu", "backlog": 4, "queued": 3, "executing": 1}
    assert await served.get(address) == full
    assert (await served.get(f"{address}?queue=films"))["backlog"] == 3
    await served.post("/api/v1/queues/films/pause")
    assert await served.get(address) == {**full, "backlog": 1}
    assert (await served.get("/api/v1/capabilities/abacus/backlog"))["backlog"] == 0
    refused(await served.ask("GET", f"{address}?queue=a%20b"), 422, "invalid_limit")


async def test_what_becomes_due_counts_although_nobody_claims(served: Api) -> None:
    """From nothing to something, as KEDA's example asks: without a worker, by a server alone."""
    world = served.world
    soon = datetime.now(UTC) + timedelta(seconds=60)
    await served.submit(queue="mails", delay_seconds=60, priority="high")
    await served.submit(queue="mails", expires_at=soon.isoformat())
    worker = await world.worker()
    await world.claim_and_settle(worker, Failed(TaskError("x"), after=30))
    await world.submit(queue="mails", delay_seconds=3600)
    await world.run(world.ops.forget(worker))
    address = "/api/v1/queues/mails/backlog"
    assert (await served.get(address))["backlog"] == 0
    await world.advance(61)
    async with serving(world, ServerConfig()) as server:
        await until(lambda: _has(server, address, 1))
        found = await scrape(server)
        assert found("queue_depth", priority="high") == 1
        by_status = (await server.get("/api/v1/queue/stats"))["by_status"]
        found_in = {state for state in State if by_status[state]}
        assert found_in == {State.QUEUED, State.SCHEDULED, State.FAILED}


async def _has(server: Api, address: str, backlog: int) -> bool:
    return bool((await server.get(address))["backlog"] == backlog)


async def test_a_queue_that_nobody_has_heard_of_has_nothing_to_do(api: Api) -> None:
    found = await api.get("/api/v1/queues/unheard.of/backlog")
    assert (found["queue"], found["backlog"]) == ("unheard.of", 0)
    assert (await api.get("/api/v1/queues"))["queues"] == []


async def test_everything_paused_is_nothing_to_do(api: Api) -> None:
    await api.submit()
    await api.post("/api/v1/control", {"paused": True})
    found = await api.get("/api/v1/queues/default/backlog")
    assert (found["backlog"], found["queued"], found["paused"]) == (0, 1, True)


async def test_a_name_that_no_queue_can_have(api: Api) -> None:
    refused(await api.ask("GET", "/api/v1/queues/a%20b/backlog"), 422, "invalid_limit")
