"""A worker that fails where others succeed is isolated for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from fairlane import Fairlane
from fairlane.core.breaker import Breaker
from fairlane.core.errors import InvalidLimit, NotSupported
from fairlane.core.model import TaskError, WorkerStatus
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.tokens import Scope, issued
from fairlane.worker import isolation
from fairlane.worker.config import Config
from fairlane.worker.isolation import Isolation
from tests.fixtures.remote import remote
from tests.fixtures.stores import World, settlement
from tests.worker.kit import PATIENCE, application, happened, looked, working

BREAKER = Breaker(3, 60.0, 30.0)
BAD = Failed(TaskError("no such disk"))
GOOD = Completed(b"1")


class Bench:
    """A worker's isolation, beside another worker on the same store."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 1_000.0
        self.isolation = Isolation(world.backend, BREAKER, lambda: self.now)

    def isolated(self) -> bool:
        return self.isolation.isolated

    async def run(self, outcome: Outcome, type: str = "work", *, here: bool = True) -> None:
        worker = await self.world.worker()
        await self.world.submit(type)
        task = await self.world.claim_one(worker)
        settled = await self.world.run(self.world.ops.settle([settlement(task, outcome, 0.1)]))
        if here:
            self.isolation.settled([task], settled)


@pytest.fixture
def bench(memory: World) -> Bench:
    return Bench(memory)


async def test_who_fails_what_others_complete_is_isolated(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.run(BAD)
    await bench.isolation.compare()
    for _ in range(2):
        await bench.run(BAD)
    await bench.isolation.compare()
    assert not bench.isolated(), "nobody else has tried"
    await bench.run(GOOD, here=False)
    with caplog.at_level(logging.WARNING):
        await bench.isolation.compare()
    assert bench.isolated()
    assert "3 runs of work failed here while others complete them" in caplog.text
    bench.now += BREAKER.cooldown
    assert not bench.isolated()
    await bench.isolation.compare()
    assert not bench.isolated(), "it begins anew"


async def test_what_fails_everywhere_is_not_the_workers_fault(bench: Bench) -> None:
    await bench.isolation.compare()
    for _ in range(5):
        await bench.run(BAD)
        await bench.run(BAD, here=False)
        await bench.run(GOOD, "other", here=False)
        await bench.isolation.compare()
    assert not bench.isolated()


async def test_a_success_of_its_own_clears_it(bench: Bench) -> None:
    for outcome in (BAD, BAD, GOOD, BAD, BAD):
        await bench.run(outcome)
        await bench.isolation.compare()
        await bench.run(GOOD, here=False)
    await bench.isolation.compare()
    assert not bench.isolated()


async def test_failures_of_long_ago_do_not_count(bench: Bench) -> None:
    for _ in range(3):
        await bench.run(BAD)
        await bench.isolation.compare()
        await bench.run(GOOD, here=False)
        bench.now += BREAKER.within / 2 + 1
    await bench.isolation.compare()
    assert not bench.isolated()


async def test_a_broken_worker_leaves_the_work_to_others(memory: World) -> None:
    await leaves_the_work_to_others(memory, lambda: application(memory))


@pytest.mark.parametrize("queues", [None, frozenset({"default"})])
async def test_so_does_one_that_has_a_token_for_workers_and_a_server(
    memory: World, queues: frozenset[str] | None
) -> None:
    new, secret = issued("workers", [Scope.WORKER], queues=queues)
    await memory.run(memory.ops.put_token(new))
    with remote(memory.backend) as url:
        async with Fairlane(url, token=secret) as broken, Fairlane(url, token=secret) as sound:
            await leaves_the_work_to_others(memory, iter([broken, sound]).__next__)


async def leaves_the_work_to_others(world: World, new: Callable[[], Fairlane]) -> None:
    """Two workers, of applications that `new` makes: one fails what the other one completes."""

    def at(path: str) -> Fairlane:
        app = new()

        @app.task(name="read")
        async def read() -> str:
            if path == "broken":
                raise OSError("no such disk")
            return path

        return app

    async def submit() -> str:
        return await world.submit("read", max_retries=50)

    store, broken, sound = application(world), at("broken"), at("sound")
    async with working(broken, name="broken", breaker=Breaker(2, 600.0, 600.0)):
        for task_id in [await submit() for _ in range(2)]:
            await looked(store, task_id, lambda task: len(task.attempts) > 0)
        async with working(sound, name="sound"), asyncio.timeout(PATIENCE):
            while (states := await statuses(world))["broken"] is not WorkerStatus.UNHEALTHY:
                await submit()
                await asyncio.sleep(0.02)
            assert states["sound"] is WorkerStatus.ACTIVE


async def test_the_same_trouble_is_logged_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    times = 0

    async def fail(_: object) -> None:
        nonlocal times
        times += 1
        if times == 3:
            asked.set()
        raise NotSupported("The server is too old.")

    await bench.run(BAD)
    monkeypatch.setattr(isolation, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(bench.world.backend, "run", fail)
    watching = asyncio.create_task(bench.isolation.watch())
    await happened(asked)
    watching.cancel()
    await asyncio.wait([watching])
    assert caplog.text.count("cannot compare itself with others: The server is too old.") == 1


async def statuses(world: World) -> dict[str, WorkerStatus]:
    """By name."""
    workers = await world.run(world.ops.workers())
    return {each.worker_id.split(".")[0]: each.status for each in workers}


def test_a_breaker_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidLimit, match="opens after 1 to 1,000 failures"):
        Config(breaker=Breaker(0, 60.0, 30.0))
