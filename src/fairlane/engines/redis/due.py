"""move_due: tasks whose time has come are queued, and tasks whose time is over end."""

from __future__ import annotations

from fairlane.core.flow import Flow, writes
from fairlane.core.model import Due
from fairlane.core.priority import MICROSECONDS
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.scripts import script

MOVE_DUE = script("move_due")


@writes
def move_due(self: Context) -> Flow[Due]:
    more, next_in = yield from self.call(MOVE_DUE)
    return Due(bool(more), int(next_in) / MICROSECONDS if next_in else None)
