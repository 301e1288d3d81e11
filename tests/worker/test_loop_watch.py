"""A blocked event loop, and a thread that is left behind, are warnings that say where."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
import time
from types import FrameType

import pytest

from fairlane import Fairlane
from fairlane.worker import loop_watch
from fairlane.worker.hanging import WARNED_SECONDS, Hanging
from fairlane.worker.loop_watch import LoopWatch, blocking_frame
from tests.worker.kit import PATIENCE, ended, working


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "BLOCKED_SECONDS", 0.2)
    monkeypatch.setattr(loop_watch, "LOOK_SECONDS", 0.02)


def block_until_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Block as a handler does, until somebody has noticed."""
    until = time.monotonic() + PATIENCE
    while "blocks the event loop" not in caplog.text and time.monotonic() < until:
        time.sleep(0.05)


async def test_what_blocks_the_event_loop_is_named_while_it_does(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    @quick.task()
    async def fetch() -> None:
        block_until_logged(caplog)

    async with working(quick):
        task = await ended(quick, (await fetch.submit()).task_id)
    (record,) = [each for each in caplog.records if "blocks the event loop" in each.getMessage()]
    assert record.levelno == logging.WARNING
    message = record.getMessage()
    assert message.startswith(f"fetch {task.task_id} blocks the event loop: for ")
    first = inspect.getsourcelines(block_until_logged)[1]
    lines = [f"{__file__}:{number} in block_until_logged" for number in range(first, first + 6)]
    assert any(line in message for line in lines)
    assert "def instead of async def" in message


async def test_a_time_limit_that_passes_while_the_loop_is_blocked(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    @quick.task(timeout=0.1, max_retries=0)
    async def fetch() -> None:
        block_until_logged(caplog)

    async with working(quick):
        task = await ended(quick, (await fetch.submit()).task_id)
    assert f"fetch {task.task_id} blocked the event loop for " in caplog.text
    assert "its time limit of 0.1 s passed meanwhile" in caplog.text


async def test_a_block_outside_of_a_task_is_reported_without_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = 0.0
    watch = LoopWatch(lambda: late, list)
    watch.start()
    try:
        late = 5.0
        until = time.monotonic() + PATIENCE
        while "The event loop is blocked: for 5.0 s so far" not in caplog.text:
            time.sleep(0.01)  # noqa: ASYNC251 (this is what it looks for)
            assert time.monotonic() < until
    finally:
        watch.stop()
    assert f"{__file__}:" in caplog.text


async def test_the_same_place_is_counted_and_a_loop_in_time_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = 5.0
    watch = LoopWatch(lambda: late, list)
    for late in (5.0, 6.0, 0.0, 5.0, 0.0, 5.0):  # three blocks  # noqa: B007
        watch._look()
    watch._summarise(all=True)
    first, last = [record.getMessage() for record in caplog.records]
    assert first.startswith("The event loop is blocked")
    assert last.startswith("… and the event loop was blocked 2 times more at ")


async def test_a_loop_that_waits_is_not_blocked() -> None:
    """Its thread may have to wait for the processor for seconds: that is nobody's fault."""
    frames: list[FrameType | None] = []
    thread = threading.get_ident()

    def look() -> None:
        time.sleep(0.1)
        frames.append(blocking_frame(sys._current_frames()[thread]))

    await asyncio.to_thread(look)
    assert frames == [None]


def test_a_thread_that_is_left_behind_is_reported_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 100.0
    hanging = Hanging(lambda: now)
    for _ in range(3):
        hanging.abandon("crunch")
    now += WARNED_SECONDS
    hanging.abandon("crunch")
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in texts] == [
        "crunch has left a thread behind (1 now)",
        "crunch has left a thread behind (4 now)",
    ]
    assert 'isolation="process"' in texts[0]


async def test_a_handler_that_times_out_in_a_thread_is_reported(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()

    @quick.task(timeout=0.05, max_retries=0)
    def crunch() -> None:
        go_on.wait(PATIENCE)

    try:
        async with working(quick):
            await ended(quick, (await crunch.submit()).task_id)
            assert "crunch has left a thread behind" in caplog.text
    finally:
        go_on.set()
