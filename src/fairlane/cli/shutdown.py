"""Make sure that a worker or server process ends, whatever its handlers do.

A handler can ignore its cancellation, block the event loop, or block a thread that others wait for.
By then the worker has returned the tasks that it could return; others take the rest when its lease
is over.
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
"""How long a worker may take to leave once no task should run any more."""
KILLING_SECONDS = 5.0
"""How much longer its supervisor waits before it kills it."""
HEARING_SECONDS = 2.0
"""How long its event loop may take to react to a second signal."""
CLOSING_SECONDS = 2.0
"""How long threads and tasks that handlers left behind may take to end."""

LEFT_BEHIND = "Threads or tasks of handlers do not end"

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a program. What it leaves behind does not keep the process alive."""
    runner = asyncio.Runner(loop_factory=_loop_factory())
    code = 1
    try:
        runner.run(main)
        code = 0
    finally:
        with _at_most(CLOSING_SECONDS, LEFT_BEHIND, code=code):
            runner.close()


def end_despite_threads(code: int) -> None:
    """Let the process end with this code soon, although threads of handlers may go on: Python would
    wait for those that are no daemons."""
    main = threading.main_thread()
    if any(not each.daemon for each in threading.enumerate() if each is not main):
        _end_in(CLOSING_SECONDS, LEFT_BEHIND, code)


@contextmanager
def stop_on_signals(stop: Callable[[], None], grace: float) -> Iterator[None]:
    """Call `stop` on SIGTERM and SIGINT within this block.

    The first signal lets running tasks finish, for up to `grace` seconds. The second stops at once.
    The third ends the process. `loop.add_signal_handler` would not react while a handler blocks the
    event loop.
    """
    stopping = Stopping(asyncio.get_running_loop(), stop, grace)
    before = {number: signal.signal(number, stopping.signalled) for number in _SIGNALS}
    try:
        yield
    finally:
        stopping.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


class Stopping:
    """Passes signals on, and ends the process if that does not stop it."""

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
        self._loop.call_soon_threadsafe(self._stop_soon)
        match self._signals:
            case 1:
                late = "The worker has not left in time"
                self._timers.append(_end_in(self._grace + LEAVING_SECONDS, late))
            case 2:
                late = "The worker has not left at once"
                self._timers.append(_end_in(LEAVING_SECONDS, late))
                self._timers.append(_timer(HEARING_SECONDS, self._end_if_blocked))
            case _:
                _end("Three signals to stop were received", 1)

    def cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _stop_soon(self) -> None:
        self._heard += 1
        self._stop()

    def _end_if_blocked(self) -> None:
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
    logger.warning("%s: the process ends anyway.", why)
    os._exit(code)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
