"""What is around a run: middleware, shared things, context variables, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import pytest

from fairlane import GIVEN, Context, Fairlane, Handle, Shared, State
from fairlane.core.errors import InvalidHandler
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.fixtures.stores import TRANSACTIONAL, World
from tests.worker.kit import ended, working

Next = Callable[[], Awaitable[Any]]

who: ContextVar[str] = ContextVar("who", default="nobody")


async def test_middleware_is_entered_in_order_and_sees_results(quick: Fairlane) -> None:
    events: list[str] = []

    @quick.around
    async def outer(ctx: Context, run: Next) -> Any:
        events.append(f"outer {ctx.task.type}")
        result = await run()
        events.append(f"outer saw {result}")
        return result + 1

    @quick.around
    async def inner(ctx: Context, run: Next) -> Any:
        events.append("inner")
        return await run() + 10

    @quick.task
    async def one() -> int:
        events.append("one")
        return 1

    async with working(quick):
        assert await (await one.submit()).result(30) == 12
    assert events == ["outer one", "inner", "one", "outer saw 11"]


async def test_middleware_s_exceptions_are_the_run_s(quick: Fairlane) -> None:
    @quick.around
    async def picky(ctx: Context, run: Next) -> Any:
        if ctx.task.type == "refused":
            raise PermissionError("not you")
        try:
            return await run()
        except ZeroDivisionError:
            return "saved"

    @quick.task(max_retries=0)
    async def refused() -> None: ...

    @quick.task
    def saved() -> Any:
        return 1 / 0

    async with working(quick):
        task = await ended(quick, (await refused.submit()).task_id)
        assert task.error is not None
        assert (task.error.code, task.error.message) == ("PermissionError", "not you")
        assert await (await saved.submit()).result(30) == "saved"


async def test_context_variables_do_not_leak(quick: Fairlane) -> None:
    @quick.task
    async def leave(name: str) -> str:
        before = who.get()
        who.set(name)
        return before

    @quick.task
    def leave_on_thread(name: str) -> str:
        before = who.get()
        who.set(name)
        return before

    who.set("the test")
    async with working(quick, concurrency=1):
        for task in (leave, leave_on_thread, leave, leave_on_thread):
            assert await (await task.submit(name="me")).result(30) == "nobody"


async def test_shared_things_are_filled_in(quick: Fairlane) -> None:
    @quick.lifespan
    @asynccontextmanager
    async def up() -> AsyncIterator[Mapping[str, Any]]:
        yield {"greeting": "hello"}

    @quick.task
    async def greet(
        ctx: Context, name: str, greeting: Annotated[str, Shared("greeting")] = GIVEN
    ) -> str:
        assert ctx.shared["greeting"] == greeting
        return f"{greeting}, {name}"

    async with working(quick):
        assert await (await greet.submit(name="Ada")).result(30) == "hello, Ada"


async def test_a_worker_does_not_begin_without_what_its_handlers_want(quick: Fairlane) -> None:
    @quick.task
    async def wanting(db: Annotated[str, Shared("db")] = GIVEN) -> None: ...

    with pytest.raises(InvalidHandler, match="wanting needs db"):
        await Worker(quick, Config()).run(signals=False)


async def test_what_a_context_knows(quick: Fairlane) -> None:
    @quick.task
    async def tell(ctx: Context) -> list[Any]:
        return [ctx.task_id, ctx.attempt, ctx.cancelled, ctx.logger.name]

    async with working(quick):
        handle = await tell.submit()
        assert await handle.result(30) == [handle.task_id, 1, False, "fairlane.worker.tell"]


async def test_a_completing_transaction_commits_with_the_handler_s_writes(
    app: Fairlane, world: World
) -> None:
    fenced = asyncio.Event()

    @app.task(max_retries=0)
    async def work(ctx: Context, fail: bool) -> str:
        async with ctx.transaction() as connection:
            assert connection is not None
            if fail:
                raise ValueError("rolled back")
        fenced.set()
        return "not kept"

    async with working(app):
        good = await ended(app, (await work.submit(fail=False)).task_id)
        if not world.transactional:
            assert good.error is not None
            assert good.error.code == "NotSupported"
            return
        bad = await ended(app, (await work.submit(fail=True)).task_id)
    assert (good.status, good.result, bad.status) == (
        State.COMPLETED,
        None,
        State.DEAD_LETTER,
    )
    assert fenced.is_set()


@pytest.mark.parametrize("world", TRANSACTIONAL, indirect=True)
async def test_what_follows_is_submitted_in_the_completing_transaction(
    app: Fairlane, world: World
) -> None:
    followers: list[Handle[Any]] = []

    @app.task
    async def follow() -> None: ...

    @app.task(max_retries=0)
    async def lead(ctx: Context, fail: bool) -> None:
        async with ctx.transaction() as connection:
            followers.append(await app.submit(follow.prepare(), connection=connection))
            if fail:
                raise ValueError("rolled back")

    async with working(app, types=frozenset({"lead"})):
        for fail in (False, True):
            await ended(app, (await lead.submit(fail=fail)).task_id)
    assert [await follower.status() for follower in followers] == [State.QUEUED, None]
