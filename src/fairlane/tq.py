"""Document 001's programming interface (see `fairlane.dialects`).

The module itself can be called, so both ways to import it work:

from fairlane import tq          # tq.init(…); tq("crawl").add({…})
from fairlane.tq import tq       # the same object, with types
"""

from __future__ import annotations

import sys
from types import ModuleType

from fairlane.dialects.errors import AlreadyInitialised, NotInitialised
from fairlane.dialects.tq import TQ, TaskQueue, tq
from fairlane.dialects.tq_types import TaskTypeContext
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
    "init",
    "pause",
    "resume",
    "stats",
    "stop",
    "tq",
]

init = tq.init
pause = tq.pause
resume = tq.resume
stats = tq.stats
stop = tq.stop


class _Callable(ModuleType):
    def __call__(self, type: str) -> TaskTypeContext:
        return tq(type)


sys.modules[__name__].__class__ = _Callable
