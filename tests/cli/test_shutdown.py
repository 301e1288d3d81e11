"""How a worker process ends: what happens in real processes is in test_processes.py."""

from __future__ import annotations

import asyncio
import queue
import signal
from collections.abc import Iterator

import pytest

from fairlane.cli import shutdown

Ends = queue.Queue[tuple[str, int]]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Where the process would have ended, and why."""
    told: Ends = queue.Queue()
    monkeypatch.setattr(shutdown, "_end", lambda why, code: told.put((why, code)))
    return told


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One that nobody runs: it hears of nothing."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_a_worker_that_outlasts_its_grace(
    ends: Ends, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "LEAVING_SECONDS", 0.01)
    shutdown.Stopping(loop, lambda: None, 0.01).signalled()
    assert ends.get(timeout=30) == ("The worker has not left in time", 1)


def test_a_loop_that_does_not_hear(
    ends: Ends, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "HEARING_SECONDS", 0.01)
    stopping = shutdown.Stopping(loop, lambda: None, 3600.0)
    stopping.signalled()
    stopping.signalled()
    assert ends.get(timeout=30) == ("A handler keeps the event loop busy", 1)
    stopping.cancel()


def test_the_third_time_it_is_over(ends: Ends, loop: asyncio.AbstractEventLoop) -> None:
    stopping = shutdown.Stopping(loop, lambda: None, 3600.0)
    for _ in range(3):
        stopping.signalled()
    assert ends.get_nowait() == ("Three signals to stop were received", 1)
    stopping.cancel()


async def test_signals_are_passed_on_and_then_left_alone(ends: Ends) -> None:
    before = signal.getsignal(signal.SIGTERM)
    stopped = asyncio.Event()
    with shutdown.stop_on_signals(stopped.set, 3600.0):
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await stopped.wait()
    assert signal.getsignal(signal.SIGTERM) is before
    assert ends.empty()
