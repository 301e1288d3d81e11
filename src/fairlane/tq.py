"""Document 001's programming interface (see `fairlane.dialects`).

The module itself can be called, so both ways to import it work:

from fairlane import tq          # tq.init(…); tq("crawl").add({…})
from fairlane.tq import tq       # the same object, with types
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fairlane.dialects.errors import AlreadyInitialised, NotInitialised
from fairlane.dialects.tq import TQ, TaskQueue, tq
from fairlane.dialects.tq_types import P, TaskTypeContext
from fairlane.wire.spec import QueueStats
from fairlane.wire.spec import SpecTask as Task

__all__ = [
    "TQ",
    "AlreadyInitialised",
    "NotInitialised",
    "QueueStats",
    "Task",
    "TaskQueue",
    "TaskTypeContext",
    "application",
    "init",
    "is_paused",
    "is_running",
    "pause",
    "register_handler",
    "resume",
    "stats",
    "stop",
    "tq",
    "unregister_handler",
]

application = tq.application
init = tq.init
is_paused = tq.is_paused
is_running = tq.is_running
pause = tq.pause
register_handler = tq.register_handler
resume = tq.resume
stats = tq.stats
stop = tq.stop
unregister_handler = tq.unregister_handler


class _Callable(ModuleType):
    def __call__(self, type: str) -> TaskTypeContext[Any]:
        return tq(type)

    def __getitem__(self, payload: type[P]) -> Callable[[str], TaskTypeContext[P]]:
        return tq[payload]


sys.modules[__name__].__class__ = _Callable
