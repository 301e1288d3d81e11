"""What handlers do, and what becomes of their tasks: on every engine."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from fairlane import Context, Fail, Fairlane, Retry, RetryPolicy, Snooze, State, TaskFailed
from tests.fixtures.stores import World
from tests.worker.kit import ended, happened, looked, seen, working


async def test_an_async_handler_s_result_comes_back(app: Fairlane) -> None:
    @app.task
    async def add(a: int, b: int = 2) -> dict[str, int]:
        return {"sum": a + b}

    async with working(app):
        handle = await add.submit(a=1)
        assert await handle.result(timeout=30) == {"sum": 3}
    task = await ended(app, handle.task_id)
    assert (task.status, task.attempt, task.result) == (State.COMPLETED, 1, {"sum": 3})
    assert task.started_at is not None


async def test_an_ordinary_handler_runs_on_a_thread(app: Fairlane) -> None:
    @app.task
    def where() -> str:
        return threading.current_thread().name

    async with working(app):
        assert (await (await where.submit()).result(30)).startswith("fairlane-handler")


async def test_many_tasks_all_run_once(app: Fairlane) -> None:
    seen: list[int] = []

    @app.task
    async def note(n: int) -> None:
        seen.append(n)

    handles = await app.submit_many([note.prepare(n=n) for n in range(300)])
    async with working(app):
        for handle in handles:
            await handle.result(30)
    assert sorted(seen) == list(range(300))


async def test_failures_are_retried_after_the_store_s_clock_says_so(
    app: Fairlane, world: World
) -> None:
    runs = 0

    @app.task(max_retries=2, retry=RetryPolicy(base=100.0, factor=2.0, cap=1000.0, jitter=0.0))
    async def shaky() -> str:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise ValueError(f"not yet, {runs}")
        return "at last"

    async with working(app):
        handle = await shaky.submit()
        for retry_count, delay in ((1, 100), (2, 200)):
            task = await looked(
                app,
                handle.task_id,
                lambda task, n=retry_count: (  # type: ignore[misc]
                    task.status is State.RETRYING and task.retry_count == n
                ),
            )
            assert task.next_retry_at is not None
            assert task.next_retry_at - task.updated_at == timedelta(seconds=delay)
            assert task.error is not None
            assert (task.error.message, task.error.code) == (
                f"not yet, {retry_count}",
                "ValueError",
            )
            assert "shaky" in (task.error.traceback or "")
            await world.advance(delay + 1)
        assert await handle.result(30) == "at last"
    task = await ended(app, handle.task_id)
    assert [each.outcome for each in task.attempts] == ["failed", "failed", "completed"]


async def test_retries_run_out(app: Fairlane) -> None:
    @app.task(max_retries=1, retry=RetryPolicy(base=0.0))
    async def hopeless() -> None:
        raise RuntimeError("no")

    async with working(app):
        handle = await hopeless.submit()
        with pytest.raises(TaskFailed, match="dead_letter: no"):
            await handle.result(30)
    task = await ended(app, handle.task_id)
    assert task.error is not None
    assert (task.status, task.error.reason, task.retry_count) == (
        State.DEAD_LETTER,
        "max_retries_exceeded",
        2,
    )


async def test_a_handler_may_say_how_it_ends(app: Fairlane, world: World) -> None:
    @app.task
    async def choose(how: str) -> None:
        if how == "retry":
            raise Retry("later", after=50)
        if how == "snooze":
            raise Snooze(70)
        raise Fail("never", code="CARD_DECLINED")

    async with working(app):
        retried = await choose.submit(how="retry")
        snoozed = await choose.submit(how="snooze")
        failed = await choose.submit(how="fail")
        task = await seen(app, retried.task_id, State.RETRYING)
        assert task.next_retry_at is not None
        assert task.next_retry_at - task.updated_at == timedelta(seconds=50)
        assert task.error is not None
        assert task.error.code == "RETRY"
        task = await seen(app, snoozed.task_id, State.SCHEDULED)
        assert (task.run_at - task.updated_at, task.retry_count) == (timedelta(seconds=70), 0)
        task = await ended(app, failed.task_id)
        assert task.error is not None
        assert (task.status, task.error.code, task.error.message) == (
            State.FAILED,
            "CARD_DECLINED",
            "never",
        )


async def test_which_exceptions_are_retried(app: Fairlane) -> None:
    @app.task(retry_on=OSError, no_retry_on=(FileNotFoundError,), retry=RetryPolicy(base=100.0))
    async def fail(how: str) -> None:
        raise {"os": OSError, "missing": FileNotFoundError, "value": ValueError}[how](how)

    async with working(app):
        states = {}
        for how in ("os", "missing", "value"):
            handle = await fail.submit(how=how)
            task = await seen(app, handle.task_id, State.RETRYING, State.FAILED)
            states[how] = task.status
    assert states == {"os": State.RETRYING, "missing": State.FAILED, "value": State.FAILED}


async def test_an_async_handler_is_cancelled_when_its_time_is_up(app: Fairlane) -> None:
    cancelled = asyncio.Event()

    @app.task(timeout=0.2, max_retries=1, retry=RetryPolicy(base=100.0))
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with working(app):
        handle = await slow.submit()
        await happened(cancelled)
        task = await seen(app, handle.task_id, State.RETRYING)
    assert task.error is not None
    assert task.error.code == "TIMEOUT"
    assert task.timeout_seconds == pytest.approx(0.3)


async def test_a_thread_is_abandoned_when_its_time_is_up_and_its_late_result_refused(
    app: Fairlane,
) -> None:
    go_on, over = threading.Event(), threading.Event()

    @app.task(timeout=0.2, max_retries=0)
    def stuck(ctx: Context) -> str:
        go_on.wait(30)
        cancelled = ctx.cancelled
        over.set()
        return f"too late, {cancelled}"

    @app.task
    def fine() -> str:
        return "fine"

    async with working(app, concurrency=1):
        handle = await stuck.submit()
        task = await ended(app, handle.task_id)
        assert task.error is not None
        assert (task.status, task.error.reason) == (State.DEAD_LETTER, "timeout")
        assert await (await fine.submit()).result(30) == "fine"
        go_on.set()
        await asyncio.to_thread(over.wait, 30)
    task = await ended(app, handle.task_id)
    assert (task.status, task.result) == (State.DEAD_LETTER, None)


async def test_an_unknown_type_stays_queued(app: Fairlane, world: World) -> None:
    @app.task
    async def known() -> None: ...

    stranger = await world.submit("stranger")
    async with working(app):
        await (await known.submit()).result(30)
        assert await world.state(stranger) is State.QUEUED


async def test_a_payload_that_does_not_fit_fails_at_once(app: Fairlane, world: World) -> None:
    @app.task(max_retries=5)
    async def typed(n: int) -> None: ...

    task_id = await world.submit("typed", {"n": "many"})
    async with working(app):
        task = await ended(app, task_id)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.FAILED, "INVALID_PAYLOAD")
    assert "`int`" in task.error.message


async def test_the_caller_s_fault_inside_a_handler_is_an_ordinary_failure(app: Fairlane) -> None:
    @app.task
    async def child(n: int) -> None: ...

    @app.task(max_retries=0)
    async def parent() -> None:
        await child.submit(n="x")  # type: ignore[arg-type]

    async with working(app):
        task = await ended(app, (await parent.submit()).task_id)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.DEAD_LETTER, "InvalidArguments")


async def test_a_handler_submits_within_its_own_trace(app: Fairlane) -> None:
    @app.task
    async def child() -> None: ...

    @app.task
    async def parent(ctx: Context) -> str:
        return (await ctx.submit(child.prepare())).task_id

    @app.task
    def ordinary(ctx: Context) -> str:
        return ctx.submit_sync(child.options(trace_id="mine").prepare()).task_id

    async with working(app):
        first = await parent.submit()
        born = await app.get(await first.result(30))
        second = await app.get(await (await ordinary.submit()).result(30))
    assert born is not None
    assert second is not None
    assert (born.trace_id, second.trace_id) == (first.task_id.replace("-", ""), "mine")


async def test_progress_is_told_and_coalesced(app: Fairlane) -> None:
    go_on = asyncio.Event()
    reports = 0
    plain = app.backend.ops.progress

    def counting(*what: object) -> object:
        nonlocal reports
        reports += 1
        return plain(*what)  # type: ignore[arg-type]

    app.backend.ops.progress = counting  # type: ignore[method-assign, assignment]

    @app.task
    def count(ctx: Context) -> None:
        for percent in range(101):
            ctx.progress(percent, f"at {percent}")
        ctx.progress(50, "half-way")
        while not go_on.is_set():
            time.sleep(0.01)
        ctx.progress(100, "done")

    async with working(app):
        handle = await count.submit()
        task = await looked(app, handle.task_id, lambda task: task.progress is not None)
        assert task.progress is not None
        assert (task.progress.percent, task.progress.message) == (50, "half-way")
        go_on.set()
        await handle.result(30)
    progress = await handle.progress()
    assert progress is not None
    assert (progress.percent, progress.message) == (100, "done")
    assert reports <= 4


async def test_long_runs_report_their_start(app: Fairlane) -> None:
    go_on = asyncio.Event()

    @app.task
    async def long() -> None:
        await go_on.wait()

    async with working(app):
        handle = await long.submit()
        task = await looked(app, handle.task_id, lambda task: task.started_at is not None)
        assert task.status is State.EXECUTING
        go_on.set()
        await handle.result(30)


async def test_cancellation_reaches_a_running_handler(app: Fairlane) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @app.task
    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with working(app):
        handle = await endless.submit()
        await happened(begun)
        answer = await handle.cancel()
        assert (answer.applied, answer.state) == (True, State.EXECUTING)
        await happened(cancelled)
        with pytest.raises(TaskFailed, match="cancelled"):
            await handle.result(30)
    assert await handle.status() is State.CANCELLED
