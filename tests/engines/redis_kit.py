"""Words that the tests of the Redis engine share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from redis import Redis

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import census
from tests.fixtures.counters import tallies
from tests.fixtures.servers import RedisServer

PATIENT = 20.0
HASTY = 0.2


@asynccontextmanager
async def opened(url: str, patience: float = HASTY, **options: Any) -> AsyncIterator[Backend]:
    backend = engines.open(url, patience=patience, **options)
    try:
        yield backend
    finally:
        await backend.driver.aclose()


@contextmanager
def operator(server: RedisServer) -> Iterator[Any]:
    """Someone with a Redis shell."""
    with Redis.from_url(server.url) as client:
        yield client


async def submitted(backend: Backend, **options: Any) -> str:
    (accepted,) = await backend.run(backend.ops.submit([new_task("work", **options)]))
    return accepted.task_id


async def registered(backend: Backend) -> str:
    worker = new_id()
    await backend.run(backend.ops.register(NewWorker(worker)))
    return worker


async def counted(backend: Backend) -> dict[State, int]:
    found = census(await backend.run(tallies(backend.ops)))
    return {state: count for state, count in found.items() if count}
