"""Faults of rules of the core that decide on every engine what a claim may take."""

from __future__ import annotations

from fairlane.core import lanes
from fairlane.core.lanes import Lane, Rules
from fairlane.core.model import Ask
from tests.mutants.planting import Break, replaced


def _serves_anyone(ask: Ask, lane: Lane) -> bool:
    return (ask.types is None or lane.type in ask.types) and (
        ask.queues is None or lane.queue in ask.queues
    )


FAULTS: dict[str, Break] = {
    "capabilities are ignored": replaced(lanes, "serves", _serves_anyone),
    "pauses are ignored": replaced(lanes, "is_paused", lambda *_: False),
    "concurrency is not counted": replaced(Rules, "slots", property(lambda _: 0)),
}
