"""A worker in another language, examples/worker.mjs, at work on a real server."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlane.core.inputs import Input
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.conftest import Servers
from tests.fixtures.stores import World, get_all, opened
from tests.server.kit import Api, serving

WORKER = Path(__file__).parents[2] / "examples" / "worker.mjs"
SECONDS = 60
KINDS = ("sqlite-file", "postgres-newest", "redis")

Process = asyncio.subprocess.Process


@pytest.fixture(params=KINDS)
async def api(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Api]:
    async with opened(request.param, servers, tmp_path) as world, serving(world) as api:
        yield api


@asynccontextmanager
async def worker(api: Api, heartbeat_ms: int = 10_000) -> AsyncIterator[Process]:
    """The example, running."""
    about = {"FAIRLANE_URL": f"http://127.0.0.1:{api.port}", "HEARTBEAT_MS": str(heartbeat_ms)}
    process = await asyncio.create_subprocess_exec(
        "node", str(WORKER), env={"PATH": os.environ["PATH"], **about}
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(world: World, condition: Callable[[dict[State, int]], bool]) -> None:
    """Wait until the numbers of tasks by state fulfil a condition."""
    async with asyncio.timeout(SECONDS):
        while not condition(await world.census()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_it_runs_tasks_and_leaves_when_told(api: Api) -> None:
    world = api.world
    sums = await world.submit_all([new_task("add", {"a": n, "b": 1}) for n in range(90)])
    bad = await world.submit_all([new_task("divide", {"a": 1, "b": 0}) for _ in range(5)])
    worse = await world.submit_all([new_task("add", {"a": "1"}, max_retries=0) for _ in range(5)])
    others = await world.submit("unheard-of")
    async with worker(api) as process:
        await until(world, lambda count: count.get(State.COMPLETED) == 90)
        await until(world, lambda count: count.get(State.DEAD_LETTER) == 5)
        naps = await world.submit_all([new_task("nap", {"seconds": 0.5}) for _ in range(3)])
        # They execute once they are claimed, but have started once they were handed to the worker.
        async with asyncio.timeout(SECONDS):
            while not all([(await world.task(each)).started_at for each in naps]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            assert await process.wait() == 0
    results = [task.result for task in await get_all(world.backend, sums) if task is not None]
    assert results == [b"%d" % (n + 1) for n in range(90)]
    failed = [await world.task(task_id) for task_id in bad]
    told = Counter((task.status, task.error and task.error.code) for task in failed)
    assert told == {(State.FAILED, "DIVISION"): 5}
    assert all(task.error and "worker.mjs" in (task.error.traceback or "") for task in failed)
    assert {await world.state(task_id) for task_id in worse} == {State.DEAD_LETTER}
    assert {await world.state(task_id) for task_id in naps} == {State.COMPLETED}, "it drained"
    assert await world.state(others) is State.QUEUED
    assert await world.run(world.ops.workers()) == [], "it said goodbye"


async def test_results_of_other_tasks_are_among_its_parameters(api: Api) -> None:
    world = api.world
    first = await world.submit("add", {"a": 1, "b": 2})
    inputs = {"a": Input((0,)), "b": Input((0,))}
    second = await world.submit("add", depends_on=[first], inputs=inputs)
    async with worker(api):
        await until(world, lambda count: count.get(State.COMPLETED) == 2)
    assert (await world.task(second)).result == b"6"


async def test_what_a_killed_one_had_comes_back(api: Api) -> None:
    world = api.world
    async with worker(api, heartbeat_ms=200) as process:
        ids = await world.submit_all([new_task("nap", {"seconds": 60}) for _ in range(3)])
        await until(world, lambda count: count.get(State.EXECUTING) == 3)
        process.kill()
        await process.wait()
        async with asyncio.timeout(SECONDS):
            while not await world.reap():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert await world.census() == {State.QUEUED: 3}
    assert {(await world.task(each)).retry_count for each in ids} == {1}


async def test_a_cancelled_task_is_stopped(api: Api) -> None:
    world = api.world
    async with worker(api, heartbeat_ms=200) as process:
        task_id = await world.submit("nap", {"seconds": 600})
        await until(world, lambda count: count.get(State.EXECUTING) == 1)
        await world.run(world.ops.cancel([task_id]))
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            assert await process.wait() == 0, "it would have slept on"
    assert await world.census() == {State.CANCELLED: 1}
