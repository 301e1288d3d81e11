"""A worker process that is suspended, taken for dead, and wakes up again."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlane.core.model import Claimed, Worker, WorkerStatus
from fairlane.core.submission import new_task
from tests.conftest import Servers
from tests.e2e.chaos.arena import until
from tests.fixtures.stores import KINDS, World, opened


@pytest.fixture(params=[kind for kind in KINDS if kind != "sqlite-memory"])
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


async def test_a_suspended_holder_is_counted_once(store: World) -> None:
    """One is the limit before, while and after: its slot is never counted twice, nor lost."""
    await store.run(store.ops.limit("work", concurrency=1))
    await store.submit_all([new_task("work", timeout_seconds=None) for _ in range(3)])
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.sleeper", store.url, stderr=asyncio.subprocess.DEVNULL
    )

    async def held() -> int:
        return sum((await store.run(store.ops.facts())).held.values())

    async def others(known: set[str]) -> list[Worker]:
        workers = await store.run(store.ops.workers())
        return [worker for worker in workers if worker.worker_id not in known]

    async def one_is_held() -> bool:
        assert await held() <= 1
        return await held() == 1

    async def is_silent() -> bool:
        return any(worker.lost for worker in await others(set()))

    try:
        await until(one_is_held, "one is held")
        (first,) = await others(set())
        child.send_signal(signal.SIGSTOP)
        await until(is_silent, "its lease has run out")
        heir = await store.worker(lease=10_000)
        taken: list[Claimed] = []

        async def taken_over() -> bool:
            await store.reap()
            taken.extend(await store.claim(heir))
            return bool(taken)

        # It may have been suspended with a lock in its hands: the store ends such sessions, but not
        # at once, and whoever reaps leaves out what is locked until the next time.
        await until(taken_over, "another has it")
        (task,) = taken
        assert await held() == 1
        child.send_signal(signal.SIGCONT)

        async def is_back() -> bool:
            return bool(await others({first.worker_id, heir}))

        await until(is_back, "it is back")  # under a new id: it has noticed what happened
        assert await store.claim(heir) == []
        assert await held() == 1
        (again,) = await others({first.worker_id, heir})
        assert (again.status, again.current_tasks) == (WorkerStatus.ACTIVE, ())
        await store.settle(task)
        await until(one_is_held, "one is held")  # and goes on with the next
    finally:
        child.kill()
        await child.wait()
