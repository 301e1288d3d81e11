"""Whatever a handler does, its attempt is recorded with a clear error and the worker lives on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fairlane import Fail, Fairlane, Retry, RetryPolicy, State, Task
from tests.worker.kit import ended, happened, working


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Ruinous(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Opaque:
    """Nothing that JSON knows."""


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


def raises(error: BaseException) -> Callable[[], Any]:
    def handler() -> Any:
        raise error

    return handler


RAISED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "system-exit": (raises(SystemExit(1)), "SystemExit", "1"),
    "keyboard-interrupt": (raises(KeyboardInterrupt()), "KeyboardInterrupt", "KeyboardInterrupt"),
    "cancelled": (raises(asyncio.CancelledError()), "CancelledError", "CancelledError"),
    "generator-exit": (raises(GeneratorExit()), "GeneratorExit", "GeneratorExit"),
    "stop-iteration": (raises(StopIteration(5)), "RuntimeError", "StopIteration"),
    "unspeakable": (raises(Unspeakable()), "Unspeakable", "Unspeakable"),
    "ruinous": (raises(Ruinous()), "Ruinous", "Ruinous"),
    "five-megabytes": (raises(ValueError("x" * 5_000_000)), "ValueError", "xxx"),
    "nul": (raises(ValueError("a\0b")), "ValueError", "a\0b"),
    "lone-surrogates": (raises(ValueError("a\ud800b")), "ValueError", "a\\ud800b"),
    "ansi": (raises(ValueError("\x1b[31mred\x1b[0m")), "ValueError", "\x1b[31mred\x1b[0m"),
    "group": (raises(ExceptionGroup("both", [ValueError("one")])), "ExceptionGroup", "both"),
    "memory": (raises(MemoryError()), "MemoryError", "MemoryError"),
    "retry-never": (lambda: Retry("x", after="soon"), "ValueError", "soon"),  # type: ignore[arg-type]
    "fail-number": (raises(Fail("x", code=404)), "404", "x"),  # type: ignore[arg-type]
}

RETURNED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "opaque": (Opaque, "INVALID_RESULT", "Opaque"),
    "nan": (lambda: float("nan"), "INVALID_RESULT", "nan"),
    "infinity-within": (lambda: {"a": [1.0, float("inf")]}, "INVALID_RESULT", "inf"),
    "too-large": (lambda: "x" * 2 * 1024 * 1024, "RESULT_TOO_LARGE", "2,097,154 bytes"),
    "surrogate": (lambda: "\ud800", "INVALID_RESULT", "surrogates"),
    "deep": (lambda: nested(500), "INVALID_RESULT", "100 levels"),
}


async def outcome_of(app: Fairlane, how: Callable[[], Any], colour: str) -> Task:
    """What became of a task whose handler does this; another task runs after it."""

    @app.task(max_retries=0)
    async def in_colour() -> Any:
        return how()

    @app.task(max_retries=0)
    def ordinary() -> Any:
        return how()

    @app.task
    async def fine() -> str:
        return "fine"

    async with working(app, concurrency=1):
        bad = await (in_colour if colour == "async" else ordinary).submit()
        task = await ended(app, bad.task_id)
        assert await (await fine.submit()).result(30) == "fine"
        assert await (await fine.submit()).result(30) == "fine"
    return task


@pytest.mark.parametrize("colour", ["async", "thread"])
@pytest.mark.parametrize("case", RAISED)
async def test_what_a_handler_raises(quick: Fairlane, case: str, colour: str) -> None:
    how, code, message = RAISED[case]
    task = await outcome_of(quick, how, colour)
    assert task.error is not None
    assert task.status in {State.DEAD_LETTER, State.FAILED}
    assert task.error.code == code
    assert message in task.error.message
    assert len(task.error.message) <= 10_000
    assert len(task.error.traceback or "") <= 50_000


@pytest.mark.parametrize("colour", ["async", "thread"])
@pytest.mark.parametrize("case", RETURNED)
async def test_what_a_handler_returns(quick: Fairlane, case: str, colour: str) -> None:
    how, code, message = RETURNED[case]
    task = await outcome_of(quick, how, colour)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.FAILED, code)
    assert message in task.error.message


@pytest.mark.parametrize("case", ["nul", "lone-surrogates", "ansi", "five-megabytes"])
async def test_every_engine_keeps_hostile_messages(app: Fairlane, case: str) -> None:
    how, code, message = RAISED[case]
    task = await outcome_of(app, how, "async")
    assert task.error is not None
    assert task.error.code == code
    assert message in task.error.message


async def test_a_handler_that_swallows_its_cancellation_is_left_behind(quick: Fairlane) -> None:
    stubborn = asyncio.Event()

    @quick.task(timeout=0.1, max_retries=0)
    async def deaf() -> None:
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue

    @quick.task
    async def fine() -> str:
        return "fine"

    async with working(quick, concurrency=1):
        handle = await deaf.submit()
        task = await ended(quick, handle.task_id)
        assert task.error is not None
        assert (task.status, task.error.code) == (State.DEAD_LETTER, "TIMEOUT")
        assert await (await fine.submit()).result(30) == "fine"
    stubborn.set()


async def test_a_worker_stops_although_a_handler_swallows_its_cancellation(
    quick: Fairlane,
) -> None:
    begun, stubborn = asyncio.Event(), asyncio.Event()

    @quick.task
    async def deaf() -> None:
        begun.set()
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue

    async with working(quick, grace=0.0):
        handle = await deaf.submit()
        await happened(begun)
    task = await quick.get(handle.task_id)
    assert task is not None
    assert (task.status, task.retry_count) == (State.QUEUED, 0)
    stubborn.set()


async def test_a_handler_that_cancels_its_own_task_costs_no_consumer(quick: Fairlane) -> None:
    @quick.task(max_retries=0)
    async def suicidal() -> None:
        this = asyncio.current_task()
        assert this is not None
        this.cancel()
        await asyncio.sleep(0)

    @quick.task
    async def fine() -> str:
        return "fine"

    async with working(quick, concurrency=1):
        task = await ended(quick, (await suicidal.submit()).task_id)
        assert task.error is not None
        assert task.error.code == "CancelledError"
        assert await (await fine.submit()).result(30) == "fine"


async def test_an_exception_that_closes_coroutines_costs_no_consumer(quick: Fairlane) -> None:
    @quick.task(max_retries=0)
    async def closing() -> None:
        carrier: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        carrier.set_exception(GeneratorExit())
        await carrier

    @quick.task
    async def fine() -> str:
        return "fine"

    async with working(quick, concurrency=1):
        task = await ended(quick, (await closing.submit()).task_id)
        assert task.error is not None
        assert task.error.code == "GeneratorExit"
        assert await (await fine.submit()).result(30) == "fine"


async def test_threads_that_hang_are_replaced_and_let_go(quick: Fairlane) -> None:
    go_on = threading.Event()

    @quick.task(timeout=0.05, max_retries=0)
    def hang() -> None:
        go_on.wait(30)

    async with working(quick, concurrency=2):
        for handle in await quick.submit_many([hang.prepare() for _ in range(5)]):
            assert (await ended(quick, handle.task_id)).status is State.DEAD_LETTER
        go_on.set()


async def test_an_ordinary_function_that_answers_with_a_coroutine(quick: Fairlane) -> None:
    async def inner() -> int:
        return 7

    @quick.task(retry=RetryPolicy(base=0.0))
    def outer() -> Any:
        return inner()

    async with working(quick):
        assert await (await outer.submit()).result(30) == 7
