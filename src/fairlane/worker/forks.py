"""Processes that handlers fork: a copy of the worker ends instead of working.

A handler may fork, and run another program or call `os._exit` in the child. A child that returns
from the handler instead, or awaits something, would continue as a second worker with the same
sockets. It ends at that point, before it runs anything that is not the handler's.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import threading
from multiprocessing.util import register_after_fork
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

logger = logging.getLogger("fairlane.worker")


class Origin:
    """The process that it was created in. In every copy of the process `copied` is true."""

    __slots__ = ("__weakref__", "copied")

    def __init__(self) -> None:
        self.copied = False
        _origins.add(self)


_origins: WeakSet[Origin] = WeakSet()
_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""Event loops of workers, and the threads that run them."""


def watch_loop() -> None:
    """Let every copy of the running event loop end as soon as a coroutine returns to it.

    The copy must not get that far: it would read what others have sent to the worker.
    """
    _loops[asyncio.get_running_loop()] = threading.get_ident()


def _watch_copies() -> None:
    for origin in list(_origins):
        origin.copied = True
    for loop, thread in list(_loops.items()):
        if thread == threading.get_ident() and not loop.is_closed():
            outermost = _outermost_coroutine()
            if outermost is None:  # a callback has forked
                loop.call_soon(end_copy)
            else:
                sys.setprofile(_Watch(outermost))


def _outermost_coroutine() -> FrameType | None:
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        if frame.f_code.co_flags & inspect.CO_COROUTINE:
            found = frame
        frame = frame.f_back
    return found


class _Watch:
    """Ends the process when a frame returns, or is suspended."""

    def __init__(self, outermost: FrameType) -> None:
        self._outermost = outermost

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if frame is self._outermost and event == "return":
            end_copy()


def end_copy(*, failed: bool = False) -> None:
    """End this process, which is a copy whose handler has returned or raised."""
    sys.setprofile(None)
    logger.warning("Process %d, which a handler forked, has left the handler: it ends", os.getpid())
    os._exit(int(failed))


os.register_at_fork(after_in_child=_watch_copies)
# The children of multiprocessing never return to the handler, and must not be slowed down.
register_after_fork(_Watch, lambda _: sys.setprofile(None))
