"""Ordinary code: everything that can be awaited can be had without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairlane import (
    Context,
    Fairlane,
    Handle,
    InvalidInput,
    MemoryStore,
    ResultTimeout,
    Schedules,
    State,
    StoreUnavailable,
    TaskFailed,
    TaskFunction,
)
from fairlane.client.testing import MemoryApp
from fairlane.core.errors import EventLoopRunning, InvalidTaskId, NotSupported
from tests.fixtures.servers import RedisServer


@pytest.fixture
def app() -> Iterator[MemoryApp]:
    with MemoryApp() as app:
        yield app


@pytest.mark.parametrize("cls", [Fairlane, Handle, TaskFunction, Context, MemoryStore, Schedules])
def test_what_is_awaited_has_a_twin(cls: type) -> None:
    for name, method in inspect.getmembers(cls, inspect.iscoroutinefunction):
        if name.startswith("_"):
            continue
        twin: Callable[..., Any] = getattr(cls, "close" if name == "aclose" else f"{name}_sync")
        assert not inspect.iscoroutinefunction(twin)
        theirs = inspect.signature(twin).parameters
        # A coroutine can be cancelled while it waits; blocking code needs a timeout instead.
        extra = {"timeout"} if name == "ended" else set()
        assert theirs.keys() - extra == inspect.signature(method).parameters.keys(), name
        first, *_ = inspect.getdoc(twin).splitlines()  # type: ignore[union-attr]
        assert first.startswith(f"Blocking twin of `{method.__name__}`"), name


def test_a_result(app: MemoryApp) -> None:
    @app.task
    def double(n: int) -> tuple[int, ...]:
        return (2 * n,)

    handle = double.submit_sync(n=4)
    with pytest.raises(ResultTimeout, match=r"has not ended within 0\.01 s: it goes on"):
        handle.result_sync(timeout=0.01)
    worker = threading.Thread(target=app.work_sync)
    worker.start()
    assert handle.result_sync(30) == (8,)  # as the hint says, not as JSON has it
    worker.join()
    assert app.result_sync(handle.task_id, 0) == [8]
    assert handle.status_sync() is State.COMPLETED


def test_what_ended_otherwise(app: MemoryApp) -> None:
    @app.task(max_retries=0)
    def fail() -> None:
        raise ValueError("no luck")

    handle = fail.submit_sync()
    app.work_sync()
    with pytest.raises(TaskFailed, match="is dead_letter: no luck"):
        handle.result_sync()
    app.run_sync(app.backend.ops.delete([handle.task_id]))
    with pytest.raises(TaskFailed, match="was deleted"):
        handle.result_sync()
    assert (handle.status_sync(), handle.progress_sync()) == (None, None)
    with pytest.raises(InvalidTaskId):
        app.result_sync("nonsense")


def test_trouble_of_the_store_reaches_who_waits(app: MemoryApp) -> None:
    @app.task
    def work() -> None: ...

    handle = work.submit_sync()

    def away(op: Any) -> Any:
        raise StoreUnavailable("away")

    run_sync, app.backend.run_sync = app.backend.run_sync, away
    with pytest.raises(StoreUnavailable):
        handle.result_sync()
    app.backend.run_sync = run_sync


def test_looking_and_changing(app: MemoryApp) -> None:
    @app.task
    def work(ctx: Context, n: int) -> None:
        ctx.progress(50, "half")

    handles = app.submit_many_sync(work.prepare(n=n) for n in range(1_001))
    assert len({handle.task_id for handle in handles}) == 1_001
    handle = handles[0]
    assert handle.cancel_sync().applied
    assert not app.cancel_sync(handle.task_id).applied
    (task,) = app.list_sync(status="cancelled").tasks
    assert task.task_id == handle.task_id
    assert app.retry_sync(handle.task_id, priority="high").state is State.CANCELLED
    assert app.stats_sync().by_status[State.QUEUED] == 1_001
    app.work_sync()
    found = app.get_sync(handle.task_id)
    assert found is not None
    assert (found.status, found.priority) == (State.COMPLETED, 8)
    progress = handle.progress_sync()
    assert progress is not None
    assert progress.message == "half"
    assert app.submit_many_sync([]) == []


def test_a_parameter_called_self(app: MemoryApp) -> None:
    @app.task
    def method(self: int, args: int = 0) -> int:
        return self + args

    handle = method.submit_sync(self=3, args=4)
    assert method(self=1) == 1
    app.work_sync()
    assert handle.result_sync() == 7


# -- a caller's own connection ---------------------------------------------------------------------


def test_a_task_of_a_caller_s_transaction(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    with Fairlane(f"sqlite:///{path}") as app, closing(sqlite3.connect(path)) as mine:

        @app.task
        def work(n: int) -> None: ...

        app.stats_sync()  # brings the store up to date
        mine.execute("CREATE TABLE orders (n)")
        mine.execute("INSERT INTO orders VALUES (1)")
        handle = app.submit_sync(work.prepare(n=1), connection=mine)
        assert handle.status_sync() is None
        mine.rollback()
        assert handle.status_sync() is None
        mine.execute("INSERT INTO orders VALUES (2)")
        several = app.submit_many_sync([work.prepare(n=n) for n in (2, 3)], connection=mine)
        mine.commit()
        assert [handle.status_sync() for handle in several] == ["queued", "queued"]


async def test_the_same_awaited(postgres_url: str) -> None:
    import asyncpg  # noqa: PLC0415

    mine = await asyncpg.connect(postgres_url)
    async with Fairlane(postgres_url) as app:

        @app.task
        async def work() -> None: ...

        change = mine.transaction()
        await change.start()
        handle = await app.submit(work.prepare(), connection=mine)
        assert await handle.status() is None
        await change.commit()
        assert await handle.status() is State.QUEUED
    await mine.close()


def test_where_there_is_no_such_thing(redis_server: RedisServer) -> None:
    with Fairlane(redis_server.url) as app:

        @app.task
        def work() -> None: ...

        with pytest.raises(NotSupported):
            app.submit_sync(work.prepare(), connection=object())


def test_in_place_a_connection_is_not_needed(app: MemoryApp) -> None:
    @app.task
    def work() -> str:
        return "done"

    with app.inline():
        assert app.submit_sync(work.prepare(), connection=object()).result_sync() == "done"
    with pytest.raises(InvalidInput):
        app.submit_sync(work.prepare(), connection=object())


async def test_what_waits_for_a_task_is_refused_in_an_event_loop(app: MemoryApp) -> None:
    """A worker on this loop could not run the task: both would wait for ever."""

    @app.task
    def work() -> int:
        return 1

    handle = work.submit_sync()  # a round trip is allowed
    for wait in (handle.result_sync, lambda: app.result_sync(handle.task_id)):
        with pytest.raises(EventLoopRunning, match=r"await handle\.result\(\)"):
            wait()
    with pytest.raises(RuntimeError):
        app.ended_sync(handle.task_id)
    await app.work()
    assert await asyncio.to_thread(handle.result_sync) == 1
    with app.inline():
        assert work.submit_sync().result_sync() == 1
