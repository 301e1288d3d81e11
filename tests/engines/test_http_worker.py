"""A worker that knows a server and no store: tokens, restarts, results that have to wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlane import Fairlane
from fairlane.core.errors import AccessDenied
from fairlane.core.states import State
from fairlane.core.tokens import Scope, issued
from fairlane.runtime.context import Context
from fairlane.runtime.outcomes import Retry, Snooze
from fairlane.worker.config import Config
from fairlane.worker.schedules import ScheduleKeeper
from fairlane.worker.worker import Worker
from tests.conftest import Servers
from tests.fixtures.remote import remote
from tests.fixtures.stores import World, opened

SECONDS = 20.0


@pytest.fixture
async def world(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    async with opened("sqlite-memory", servers, tmp_path) as world:
        yield world


async def token(world: World, *scopes: Scope) -> str:
    new, secret = issued("test", scopes)
    await world.run(world.ops.put_token(new))
    return secret


def application(url: str, secret: str | None = None) -> Fairlane:
    app = Fairlane(url, token=secret, patience=0.5)

    @app.task(max_retries=1)
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(max_retries=0)
    async def nest(ctx: Context) -> str:
        return (await ctx.submit(add.prepare(a=1, b=1))).task_id

    @app.task(max_retries=0, concurrency=1)
    async def end(how: str) -> None:
        match how:
            case "fail":
                raise RuntimeError("no")
            case "snooze":
                raise Snooze(100)
            case "retry":
                raise Retry(after=50)

    return app


@asynccontextmanager
async def working(app: Fairlane, **options: Any) -> AsyncIterator[Worker]:
    worker = Worker(app, Config(**options))
    running = asyncio.create_task(worker.run(signals=False))
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(SECONDS):
            await running
        await app.aclose()


async def ended(world: World, task_id: str, *states: State) -> Any:
    wanted = states or (State.COMPLETED, State.DEAD_LETTER, State.FAILED)
    async with asyncio.timeout(SECONDS):
        while (task := await world.task(task_id)).status not in wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return task


async def test_a_token_for_workers_is_all_that_a_worker_needs(world: World) -> None:
    secret = await token(world, Scope.WORKER)
    task_id = await world.submit("add", {"a": 1, "b": 2})
    with remote(world.backend) as url:
        async with working(application(url, secret), name="far"):
            task = await ended(world, task_id)
            (worker,) = await world.run(world.ops.workers())
            assert worker.worker_id.startswith("far.")
            assert task.attempts[0].worker_id == worker.worker_id
    assert task.result == b"3"
    assert await world.run(world.ops.workers()) == [], "it has said goodbye"


async def test_a_handler_that_submits_needs_a_token_for_that(world: World) -> None:
    secret = await token(world, Scope.WORKER)
    refused = await world.submit("nest", max_retries=0)
    with remote(world.backend) as url:
        async with working(application(url, secret)):
            task = await ended(world, refused)
        assert task.error is not None
        assert "scope submit" in task.error.message
        both = await token(world, Scope.WORKER, Scope.SUBMIT)
        accepted = await world.submit("nest")
        async with working(application(url, both)):
            task = await ended(world, accepted)
            assert task.status is State.COMPLETED


@pytest.mark.parametrize("both", [True, False])
async def test_schedules_take_a_token_that_may_submit(
    world: World, caplog: pytest.LogCaptureFixture, both: bool
) -> None:
    """Without it, the worker says so once, and works all the same."""
    secret = await token(world, Scope.WORKER, *([Scope.SUBMIT] if both else []))
    task_id = await world.submit("add", {"a": 1, "b": 2})
    with remote(world.backend) as url:
        app = application(url, secret)
        app.every(minutes=5, arguments={"a": 1, "b": 1})(app.tasks["add"])
        with caplog.at_level(logging.WARNING, "fairlane.worker"):
            async with working(app):
                assert (await ended(world, task_id)).result == b"3"
                keeper = ScheduleKeeper(app)
                for _ in range(3):
                    await keeper.declare(app.run)
    warnings = [each.getMessage() for each in caplog.records if "schedules" in each.getMessage()]
    advice = "give it a token with the scopes worker and submit."
    assert [each.endswith(advice) for each in warnings] == ([] if both else [True] * 2)
    (found,) = await world.run(world.ops.schedules(["add"]))
    assert (found is not None) is both


@pytest.mark.parametrize("scopes", [(Scope.SUBMIT,), ()])
async def test_a_token_that_is_none_for_workers_is_told_at_once(
    world: World, scopes: tuple[Scope, ...]
) -> None:
    secret = await token(world, *scopes) if scopes else "fl_unknown"
    await token(world, Scope.ADMIN)  # so that one is needed
    with remote(world.backend) as url:
        app = application(url, secret)
        with pytest.raises(AccessDenied):
            async with asyncio.timeout(SECONDS):
                await Worker(app).run(signals=False)
        await app.aclose()


async def test_what_a_run_comes_to_is_decided_by_the_server(world: World) -> None:
    with remote(world.backend) as url:
        async with working(application(url)):
            failed = await world.submit("end", {"how": "fail"}, max_retries=0)
            snoozed = await world.submit("end", {"how": "snooze"})
            retried = await world.submit("end", {"how": "retry"}, max_retries=1)
            unreadable = await world.submit("add", {"a": "x", "b": 1})
            dead = await ended(world, failed)
            assert (dead.status, dead.error.message) == (State.DEAD_LETTER, "no")
            assert dead.error.traceback is not None
            put_off = await ended(world, snoozed, State.SCHEDULED)
            assert (put_off.retry_count, put_off.attempts[0].outcome) == (0, "snoozed")
            waiting = await ended(world, retried, State.RETRYING)
            assert waiting.next_retry_at is not None
            assert (waiting.next_retry_at - waiting.updated_at).total_seconds() == 50
            assert (await ended(world, unreadable)).status is State.FAILED
        controls = await world.run(world.ops.controls())
        assert controls.types["end"].concurrency == 1, "limits of the code are set by the worker"


async def test_a_result_waits_for_its_server(world: World) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    with ExitStack() as server:
        url = server.enter_context(remote(world.backend))
        app = application(url)

        @app.task()
        async def wait() -> str:
            began.set()
            await go_on.wait()
            return "here"

        task_id = await world.submit("wait")
        async with working(app):
            async with asyncio.timeout(SECONDS):
                await began.wait()
            await asyncio.to_thread(server.close)
            go_on.set()
            assert (await world.task(task_id)).status is State.EXECUTING
            server.enter_context(remote(world.backend, port=urlsplit(url).port or 0))
            task = await ended(world, task_id)
            again = await world.submit("add", {"a": 2, "b": 2})
            assert (await ended(world, again)).result == b"4"
    assert (task.result, task.attempt, len(task.attempts)) == (b'"here"', 1, 1)


async def test_a_worker_with_nothing_to_do_is_quick_to_begin_and_to_stop(world: World) -> None:
    with remote(world.backend) as url:
        async with working(application(url)):
            async with asyncio.timeout(SECONDS):
                while not await world.run(world.ops.workers()):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            for n in range(5):
                task_id = await world.submit("add", {"a": n, "b": 0})
                assert (await ended(world, task_id)).result == str(n).encode()
