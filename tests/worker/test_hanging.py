"""A type whose handlers hang in threads does not take a worker, or all of them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fairlane import RetryPolicy, State
from fairlane.core.held_back import held_back
from fairlane.worker import hanging
from fairlane.worker.hanging import HELD_FROM, PROBE_SECONDS, Hanging
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE, application, ended, working


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted(clock: Clock) -> Hanging:
    """Where one type is held back."""
    counted = Hanging(clock)
    for _ in range(HELD_FROM):
        assert counted.held == frozenset()
        counted.abandon("bad")
    assert counted.held == {"bad"}
    return counted


def test_a_type_is_held_back_and_tried_now_and_then(counted: Hanging, clock: Clock) -> None:
    assert counted.probe() is None
    clock.now += PROBE_SECONDS
    assert counted.probe() == "bad"
    assert counted.probe() is None
    counted.abandon("bad")  # the one that was tried hangs as well
    assert counted.held == {"bad"}
    clock.now += PROBE_SECONDS
    assert counted.probe() == "bad"
    counted.succeed("good")
    assert counted.held == {"bad"}
    counted.succeed("bad")
    assert counted.held == frozenset()
    assert counted.threads == HELD_FROM + 1  # they hang all the same


def test_threads_that_end_after_all_make_room(counted: Hanging) -> None:
    counted.finish("bad")
    assert (counted.held, counted.threads) == (frozenset(), HELD_FROM - 1)


def test_runs_that_hang_among_others_that_end_are_not_held_back() -> None:
    counted = Hanging()
    for _ in range(3 * HELD_FROM):
        counted.abandon("mixed")
        counted.succeed("mixed")
    assert (counted.held, counted.threads) == (frozenset(), 3 * HELD_FROM)


# What a claim leaves out is the same on every engine: see tests/conformance/test_lanes.py.
@pytest.mark.parametrize("world", ["sqlite-memory", "redis"], indirect=True)
@pytest.mark.parametrize("over", ["in time", "late"])
async def test_others_are_served_while_a_type_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    """Eight tasks, four runs each: they left 32 threads and an unhealthy worker for good."""
    monkeypatch.setattr(hanging, "PROBE_SECONDS", 0.1 if over == "in time" else 3600.0)
    app = application(world)
    go_on = threading.Event()
    heals = threading.Event()

    @app.task(timeout=0.05, max_retries=3, retry=RetryPolicy(base=0.01))
    def hang() -> None:
        if not heals.is_set():
            go_on.wait(PATIENCE)

    @app.task()
    def double(n: int) -> int:
        return 2 * n

    try:
        async with working(app, concurrency=4, lease=3.0) as worker:
            ids = [(await hang.submit()).task_id for _ in range(8)]
            async with asyncio.timeout(PATIENCE):
                while not worker._hanging.held:  # noqa: ASYNC110 (a thread says so)
                    await asyncio.sleep(0.01)
            for n in range(20):
                assert await (await double.submit(n=n)).result(PATIENCE) == 2 * n
            assert worker._hanging.threads < 20
            assert worker._report()[0]
            # The next one that is tried ends in time; or those that hang end after all.
            heals.set()
            if over == "late":
                go_on.set()
            tasks = [await ended(app, each) for each in ids]
            assert {each.status for each in tasks} <= {State.COMPLETED, State.DEAD_LETTER}
            assert worker._hanging.held == frozenset()
    finally:
        go_on.set()


# That every engine keeps what a heartbeat says: see tests/conformance/test_overview.py.
@pytest.mark.parametrize("world", ["sqlite-memory", "redis"], indirect=True)
async def test_heartbeats_say_what_is_held_back(world: World) -> None:
    app = application(world)
    go_on = threading.Event()

    @app.task(timeout=0.05, max_retries=0)
    def hang() -> None:
        go_on.wait(PATIENCE)

    async def once(found: set[str]) -> str:
        """Return the id of the worker once the store knows that it holds back these types."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for worker in await world.run(world.ops.workers()):
                    if worker.health is not None and held_back(worker) == found:
                        return worker.worker_id
                await asyncio.sleep(0.01)

    try:
        # The lease is long: what has changed is said at once, not with the next regular heartbeat.
        async with working(app, concurrency=4, lease=10 * PATIENCE):
            worker_id = await once(set())
            for _ in range(HELD_FROM):
                await ended(app, (await hang.submit()).task_id)
            assert await once({"hang"}) == worker_id
            waiting = await hang.submit()
            (reason, _) = await app.why(waiting.task_id) or []
            assert reason.code == "held_back"
            go_on.set()
            await once(set())
            await ended(app, waiting.task_id)
    finally:
        go_on.set()
