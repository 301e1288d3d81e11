"""Moving the clock of a test's store, and firing the schedules that become due on the way."""

from __future__ import annotations

from fairlane.core.flow import Flow
from fairlane.core.store import Operations

MOST_TICKS = 10_000
"""How often one move stops at ticks. Later ones are handled in one step, as after an outage."""
LEAST_SECONDS = 1e-6
"""The shortest step of the clock."""


def fire(ops: Operations) -> Flow[None]:
    """Handle all ticks that are due."""
    while (yield ops.fire_due()).more:
        pass


def advance(ops: Operations, seconds: float) -> Flow[None]:
    """Move the clock on, tick by tick. Also queue what is due then, and end what has expired."""
    for _ in range(MOST_TICKS):
        wait: float | None = yield ops.due_schedules()
        if wait is None or wait > seconds:
            break
        if wait > 0:
            wait = max(wait, LEAST_SECONDS)
            yield ops.shift_clock(wait)
            seconds -= wait
        yield from fire(ops)
    yield ops.shift_clock(seconds)
    yield from fire(ops)
    while (yield ops.move_due()).more:
        pass
