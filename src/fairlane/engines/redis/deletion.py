"""prune: delete what is older than its retention."""

from __future__ import annotations

from fairlane.core.flow import Flow, writes
from fairlane.core.retention import Pruned, Retention, checked, past
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.scripts import script

PRUNE = script("prune")

_NOW = 0
"""Only the script knows the time, so it receives ages: deadlines before time 0."""


@writes
def prune(self: Context, retention: Retention) -> Flow[Pruned]:
    checked(retention)
    states: list[Argument] = []
    for state, deadline in retention.deadlines(_NOW).items():
        states += (state.code, -deadline)
    ages = (retention.workers, retention.journal)
    tasks, more = yield from self.call(PRUNE, *(-past(seconds, _NOW) for seconds in ages), *states)
    return Pruned(tasks, bool(more))
