"""No look at a store holds the event loop for more than 50 ms, also if tokens have filled the store
with lanes, names of workers and definitions as far as they may."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairlane.core import limits
from fairlane.core.definitions import Definition
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.core.submission import new_task
from fairlane.server.operations import Operation
from fairlane.server.routes import OPERATIONS
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.kit import Api, serving
from tests.server.security.budget import HELD_SECONDS, asking, time_of_call, without_the_rest
from tests.server.security.kit import name_of, scene

LOOKS = {
    *("/api/v1/queue/stats", "/api/v1/stats/history", "/metrics", "/api/tasks/stats"),
    *("/api/v1/queues", "/api/v1/queues/{queue}/backlog"),
    "/api/v1/capabilities/{capability}/backlog",
    *("/api/v1/types", "/api/v1/types/{type}", "/api/v1/definitions", "/docs"),
    *("/api/v1/workers", "/api/v1/workers/{worker_id}"),
    *("/api/v1/tasks/{task_id}", "/api/v1/tasks/{task_id}/why"),
}
"""Paths whose responses follow from all lanes, workers or definitions."""


@pytest.fixture(params=["sqlite-memory", "postgres-newest", "redis"])
async def full(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Api]:
    async with opened(request.param, servers, tmp_path) as world:
        await fill(world)
        async with serving(world) as api:
            yield api


async def fill(world: World) -> None:
    size = 900
    for start in range(0, limits.LANES - size, size):
        types = (f"{number:0100}" for number in range(start, start + size))
        await world.submit_all([new_task(type, {}) for type in types])
    for number in range(limits.WORKERS_NAME_BYTES // limits.WORKER_NAME_BYTES - 1):
        names = frozenset(f"{number:04}-{each:027}" for each in range(limits.WORKER_NAMES))
        await world.run(world.ops.register(NewWorker(new_id(), types=names)))
    properties = {f"parameter-{number}": {"type": "string"} for number in range(750)}
    schema = {"type": "object", "properties": properties}
    for number in range(3):
        types = (f"{number}-{each}" for each in range(40))
        await world.run(
            world.ops.publish([Definition(type=type, parameters=schema) for type in types])
        )


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    with without_the_rest():
        yield


@pytest.mark.timeout(110)
async def test_looks_at_a_full_store(full: Api) -> None:
    place = await scene(full.world)
    looks = [each for each in OPERATIONS if each.method == "GET" and each.path in LOOKS]
    assert {each.path for each in looks} == LOOKS
    submission = next(each for each in OPERATIONS if name_of(each) == "POST /api/v1/tasks")
    held = {}

    async def measure(operation: Operation, path: str, body: bytes | None) -> None:
        cost = await time_of_call(asking(full, operation.method, path, body, {200, 201}))
        held[name_of(operation)] = cost.held

    for operation in looks:
        await measure(operation, place.path(operation), None)
    await measure(submission, "/api/v1/tasks", b'{"task_type":"work"}')
    slow = {
        name: f"{seconds * 1000:.0f} ms" for name, seconds in held.items() if seconds > HELD_SECONDS
    }
    assert slow == {}
