"""The end of a worker process, which comes whatever its handlers do.

A handler can swallow its cancellation, keep the event loop busy or block a thread that everyone
waits for. What the worker could give back, it has given back by then; the rest is taken from it
when its lease is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger("fairlane.worker")

LEAVING_SECONDS = 15.0
"""How long a worker may take to leave once nothing should run any more."""
HEARING_SECONDS = 2.0
"""How long its event loop may take to hear of a second signal."""
CLOSING_SECONDS = 2.0
"""How long what handlers left behind may take to end."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a worker's program; nothing that it leaves behind keeps the process."""
    runner = asyncio.Runner(loop_factory=_loop_factory())
    try:
        runner.run(main)
    finally:
        with _at_most(CLOSING_SECONDS, "What handlers left behind does not end", code=0):
            runner.close()


@contextmanager
def stop_on_signals(stop: Callable[[], None], grace: float) -> Iterator[None]:
    """SIGTERM and SIGINT call `stop`: the first time to let what runs finish, for so many seconds,
    the second time at once; the third time the process ends as it is.

    Not `loop.add_signal_handler`: that is not heard while a handler keeps the loop busy.
    """
    stopping = Stopping(asyncio.get_running_loop(), stop, grace)
    before = {number: signal.signal(number, stopping.signalled) for number in _SIGNALS}
    try:
        yield
    finally:
        stopping.over()
        for number, handler in before.items():
            signal.signal(number, handler)


class Stopping:
    """Passes signals on, and sees to it that they lead to an end."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None], grace: float
    ) -> None:
        self._loop = loop
        self._stop = stop
        self._grace = grace
        self._signals = 0
        self._heard = 0
        self._timers: list[threading.Timer] = []

    def signalled(self, *_: object) -> None:
        self._signals += 1
        self._loop.call_soon_threadsafe(self._hear)
        match self._signals:
            case 1:
                late = "The worker has not left in time"
                self._timers.append(_end_in(self._grace + LEAVING_SECONDS, late))
            case 2:
                late = "The worker has not left at once"
                self._timers.append(_end_in(LEAVING_SECONDS, late))
                self._timers.append(_timer(HEARING_SECONDS, self._end_if_deaf))
            case _:
                _end("The worker was told to stop three times", 1)

    def over(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _hear(self) -> None:
        self._heard += 1
        self._stop()

    def _end_if_deaf(self) -> None:
        if self._heard < 2:
            _end("A handler keeps the event loop busy", 1)


@contextmanager
def _at_most(seconds: float, why: str, *, code: int) -> Iterator[None]:
    timer = _end_in(seconds, why, code)
    try:
        yield
    finally:
        timer.cancel()


def _end_in(seconds: float, why: str, code: int = 1) -> threading.Timer:
    return _timer(seconds, lambda: _end(why, code))


def _timer(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


def _end(why: str, code: int) -> None:
    logger.warning("%s: the process ends all the same.", why)
    os._exit(code)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
