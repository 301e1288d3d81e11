"""Starting, draining, dying and beginning anew."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fairlane import Fairlane, State, StoreUnavailable, StoreUnusable
from fairlane.backoff import Backoff
from fairlane.client.parent_results import ParentResults
from fairlane.core.errors import InvalidWorker, SchemaMissing
from fairlane.core.model import Beat, WorkerStatus
from fairlane.runtime.execution import Surroundings
from fairlane.worker.buffer import Buffer
from fairlane.worker.committer import Committer
from fairlane.worker.config import Config
from fairlane.worker.executor import Executor
from fairlane.worker.processes import Processes
from fairlane.worker.runners import Threads
from fairlane.worker.worker import Worker
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE, application, ended, happened, looked, seen, working


class Gate:
    """A handler that says when it began, and ends when it may."""

    def __init__(self, app: Fairlane, **options: Any) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.runs = 0

        @app.task(name="gate", **options)
        async def gate() -> str:
            self.runs += 1
            self.begun.set()
            await self.go_on.wait()
            return "through"

        self.task = gate


async def finished(run: asyncio.Task[None]) -> None:
    async with asyncio.timeout(PATIENCE):
        await run


async def test_a_drain_gives_back_what_has_not_begun_and_waits_for_the_rest(
    app: Fairlane, world: World
) -> None:
    gate = Gate(app)
    worker = Worker(app, Config(concurrency=1, maintenance=False, poll_interval=0.05))
    handles = await app.submit_many([gate.task.prepare() for _ in range(3)])
    run = asyncio.create_task(worker.run(signals=False))
    await happened(gate.begun)
    worker.stop()
    (told,) = await world.run(world.ops.workers())
    while told.status is not WorkerStatus.DRAINING:
        await asyncio.sleep(0.01)
        (told,) = await world.run(world.ops.workers())
    gate.go_on.set()
    await finished(run)
    tasks = [await world.task(handle.task_id) for handle in handles]
    assert sorted(task.status for task in tasks) == ["completed", "queued", "queued"]
    assert all(task.retry_count == 0 for task in tasks)
    assert await world.run(world.ops.workers()) == []


async def test_what_outlasts_the_grace_is_released_at_no_cost(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    async with working(app, grace=0.05):
        handle = await gate.task.submit()
        await happened(gate.begun)
    task = await world.task(handle.task_id)
    assert (task.status, task.retry_count, task.returns) == (State.QUEUED, 0, 0)
    assert [each.outcome for each in task.attempts] == ["released"]


async def test_a_second_stop_is_at_once(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    async with working(app, grace=3600.0) as worker:
        handle = await gate.task.submit()
        await happened(gate.begun)
        worker.stop()
    # `working` stopped it for the second time.
    task = await world.task(handle.task_id)
    assert (task.status, task.retry_count) == (State.QUEUED, 0)


async def test_a_worker_that_is_cancelled_gives_its_tasks_back(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    run = asyncio.create_task(Worker(app, Config(maintenance=False)).run(signals=False))
    handle = await gate.task.submit()
    await happened(gate.begun)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finished(run)
    task = await world.task(handle.task_id)
    assert (task.status, task.retry_count, task.returns) == (State.QUEUED, 0, 0)
    assert await world.run(world.ops.workers()) == []


async def test_a_signal_stops_it(quick: Fairlane) -> None:
    gate = Gate(quick)
    gate.go_on.set()
    worker = Worker(quick, Config(maintenance=False))
    run = asyncio.create_task(worker.run())
    await (await gate.task.submit()).result(PATIENCE)
    os.kill(os.getpid(), signal.SIGTERM)
    await finished(run)


async def test_an_operator_s_drain_ends_it(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    gate.go_on.set()
    worker = Worker(app, Config(maintenance=False, lease=0.6, poll_interval=0.05))
    run = asyncio.create_task(worker.run(signals=False))
    await (await gate.task.submit()).result(PATIENCE)
    (told,) = await world.run(world.ops.workers())
    await world.run(world.ops.mark(told.worker_id, WorkerStatus.DRAINING))
    await finished(run)
    assert await world.run(world.ops.workers()) == []


async def test_a_worker_that_was_declared_dead_begins_anew(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    async with working(app, lease=3.0):
        handle = await gate.task.submit()
        await looked(app, handle.task_id, lambda task: task.started_at is not None)
        gate.begun.clear()
        (first,) = await world.run(world.ops.workers())
        await world.run(world.ops.forget(first.worker_id))
        await world.reap()
        await happened(gate.begun)  # in its second life
        gate.go_on.set()
        assert await handle.result(PATIENCE) == "through"
        alive = [
            worker
            for worker in await world.run(world.ops.workers())
            if worker.status is not WorkerStatus.DEAD
        ]
        assert [worker.worker_id for worker in alive] != [first.worker_id]
    task = await world.task(handle.task_id)
    assert [each.outcome for each in task.attempts] == ["lost", "completed"]


async def test_a_heart_that_is_not_heard_ends_the_life(quick: Fairlane) -> None:
    gate = Gate(quick)
    heartbeat = quick.backend.run_sync
    cut = False

    def deaf(op: Any) -> Any:
        if cut and op.name == "heartbeat":
            raise StoreUnusable
        return heartbeat(op)

    quick.backend.run_sync = deaf
    async with working(quick, lease=0.6):
        handle = await gate.task.submit()
        await happened(gate.begun)
        cut = True
        workers = await quick.run(quick.backend.ops.workers())
        while len(workers) < 2:  # it fenced itself off, and registered again
            await asyncio.sleep(0.01)
            workers = await quick.run(quick.backend.ops.workers())
        cut = False
        gate.go_on.set()
    assert await handle.status() is State.EXECUTING  # its first life never said what became of it


async def test_what_is_held_is_let_go_unrun_when_it_was_cancelled(memory: World) -> None:
    worker_id = await memory.worker()
    held, cancelled = await memory.submit(), await memory.submit()
    tasks = await memory.claim(worker_id)
    await memory.run(memory.ops.cancel([cancelled]))
    buffer, committer = Buffer(), Committer(memory.backend, worker_id)
    load, parents = application(memory).payload_blobs().read, ParentResults(memory.backend).of
    around = Surroundings({}, [], Threads().run, load, parents)
    processes = Processes(None, memory.url)
    executor = Executor({}, around, processes, memory.backend, buffer, committer)
    buffer.put(tasks)
    pulse = await memory.run(memory.ops.heartbeat(Beat(worker_id)))
    executor.let_go(pulse.let_go)
    assert [task.task_id for task in buffer.empty()] == [held]
    delivering = asyncio.create_task(committer.run())
    await committer.flushed()
    delivering.cancel()
    pulse = await memory.run(memory.ops.heartbeat(Beat(worker_id)))
    assert (pulse.let_go, await memory.state(cancelled)) == ([], State.CANCELLED)


async def test_limits_in_the_code_are_set_once(app: Fairlane, world: World) -> None:
    @app.task(rate_limit=5, concurrency=2)
    async def limited() -> None: ...

    async with working(app):
        await (await limited.submit()).result(PATIENCE)
    rules = (await world.run(world.ops.controls())).types["limited"]
    assert (rules.rate, rules.concurrency) == (5, 2)
    await world.run(world.ops.limit("limited", rate=50.0, concurrency=9))
    async with working(app):
        await (await limited.submit()).result(PATIENCE)
    rules = (await world.run(world.ops.controls())).types["limited"]
    assert (rules.rate, rules.concurrency) == (50, 9)


async def test_a_worker_for_some_types_leaves_the_others_alone(app: Fairlane, world: World) -> None:
    @app.task(rate_limit=5)
    async def mine() -> str:
        return "mine"

    @app.task(rate_limit=5)
    async def theirs() -> None: ...

    other = await theirs.submit()
    async with working(app, types=frozenset({"mine"}), name="mail"):
        assert await (await mine.submit()).result(PATIENCE) == "mine"
        (worker,) = await world.run(world.ops.workers())
        assert worker.worker_id.startswith("mail.")
        assert worker.types == frozenset({"mine"})
    assert await other.status() is State.QUEUED
    assert (await world.run(world.ops.controls())).types.keys() == {"mine"}


async def test_types_and_names_that_cannot_be(quick: Fairlane) -> None:
    with pytest.raises(InvalidWorker, match="has no task 'gone'"):
        await Worker(quick, Config(types=frozenset({"gone"}))).run(signals=False)
    for name in ("", "a b", "x" * 101):
        with pytest.raises(InvalidWorker, match="name has 1 to 100 characters"):
            Config(name=name)
    with pytest.raises(InvalidWorker, match="tasks_per_child"):
        Config(tasks_per_child=0)


async def test_an_unhealthy_worker_gets_no_tasks_until_it_recovers(
    app: Fairlane, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(app)
    gate.go_on.set()
    monkeypatch.setattr("fairlane.worker.health.memory", lambda: 1000)
    async with working(app, memory_limit=500, lease=1.5):

        async def status() -> WorkerStatus | None:
            workers = await world.run(world.ops.workers())
            return workers[0].status if workers else None

        while await status() is not WorkerStatus.UNHEALTHY:  # noqa: ASYNC110 (in the store)
            await asyncio.sleep(0.01)
        handle = await gate.task.submit()
        (worker,) = await world.run(world.ops.workers())
        beats = worker.last_heartbeat
        while worker.last_heartbeat == beats:  # it lives, and asks for work
            await asyncio.sleep(0.01)
            (worker,) = await world.run(world.ops.workers())
        assert await handle.status() is State.QUEUED
        monkeypatch.setattr("fairlane.worker.health.memory", lambda: 100)
        assert await handle.result(PATIENCE) == "through"
        assert worker.health is not None
        assert worker.health["memory_bytes"] == 1000


async def test_what_hooks_provide_is_shared_and_taken_down(quick: Fairlane) -> None:
    events: list[str] = []

    @quick.lifespan
    @asynccontextmanager
    async def first():  # type: ignore[no-untyped-def]
        events.append("up 1")
        yield {"db": "pool"}
        events.append("down 1")

    @quick.lifespan
    @asynccontextmanager
    async def second():  # type: ignore[no-untyped-def]
        events.append("up 2")
        yield None
        events.append("down 2")

    gate = Gate(quick)
    gate.go_on.set()
    async with working(quick):
        await (await gate.task.submit()).result(PATIENCE)
        assert events == ["up 1", "up 2"]
    assert events == ["up 1", "up 2", "down 2", "down 1"]


async def test_a_store_that_cannot_be_used_ends_it(tmp_path: Any) -> None:
    app = Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}", migrate=False)
    with pytest.raises(SchemaMissing):
        await Worker(app, Config()).run(signals=False)
    await app.aclose()


async def test_a_store_that_is_away_is_waited_for(quick: Fairlane) -> None:
    gate = Gate(quick)
    gate.go_on.set()
    run, failures = quick.backend.run, 0

    async def flaky(op: Any) -> Any:
        nonlocal failures
        if failures < 6 and op.name in {"controls", "register", "claim", "settle"}:
            failures += 1
            raise StoreUnavailable
        return await run(op)

    quick.backend.run = flaky
    handle = await gate.task.submit()
    async with working(quick):
        assert await handle.result(PATIENCE) == "through"
    assert failures == 6


async def test_a_stop_is_heeded_while_the_store_is_away(quick: Fairlane) -> None:
    tried = asyncio.Event()

    async def away(op: Any) -> Any:
        tried.set()
        raise StoreUnavailable

    quick.backend.run = away
    async with working(quick):
        await happened(tried)


async def test_a_part_that_fails_is_told_and_the_worker_begins_anew_after_a_while(
    quick: Fairlane, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(quick)
    gate.go_on.set()
    run, fails, pauses = quick.backend.run, 3, 0

    async def odd(op: Any) -> Any:
        nonlocal fails
        if op.name == "claim" and fails:
            fails -= 1
            raise ZeroDivisionError
        return await run(op)

    def paused(self: Backoff) -> float:
        nonlocal pauses
        pauses += 1
        return 0.0

    monkeypatch.setattr(Backoff, "next", paused)
    quick.backend.run = odd
    async with working(quick):
        assert await (await gate.task.submit()).result(PATIENCE) == "through"
    assert caplog.text.count("A part of the worker failed") == pauses == 3


@pytest.mark.parametrize(
    "wrong",
    [{"concurrency": 0}, {"lease": 0.0}, {"poll_interval": float("nan")}, {"grace": -1.0}],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidWorker):
        Config(**wrong)


async def test_the_books_are_balanced_after_all_of_it(app: Fairlane, world: World) -> None:
    gate = Gate(app)
    async with working(app, grace=0.05):
        handle = await gate.task.submit()
        await happened(gate.begun)
        await handle.cancel()
    assert await world.census() == {State.CANCELLED: 1}
    await seen(app, handle.task_id, State.CANCELLED)
    assert (await ended(app, handle.task_id)).result is None
