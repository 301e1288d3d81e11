"""Events about ticks of schedules that were not fired. The store counts them: see `tick_counts`."""

from __future__ import annotations

import msgspec

from fairlane.core.model import moment
from fairlane.core.schedules import Outcome
from fairlane.core.tick_counts import Skip, TickCounts
from fairlane.server.stream.items import Item
from fairlane.wire.events import EventType, LiveEvent
from fairlane.wire.times import Moment, iso


class SkipData(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks that were not fired: how many, of which `tick` is the newest, and why. `number` counts
    these events. `task_id`: the task of an earlier tick that had not ended."""

    number: int
    schedule_id: str
    tick: Moment
    count: int
    outcome: Outcome
    reason: str
    task_id: str | None


class Skips:
    """Follows the counts of one store."""

    def __init__(self) -> None:
        self._known: int | None = None

    def forget(self) -> None:
        """Begin again: what happens until the next call of `take` is not followed."""
        self._known = None

    def take(self, counts: TickCounts) -> list[Item]:
        """Return what is new since the last call; nothing the first time.

        The store keeps the last hundred. Of more than that in between, the others are left out.
        """
        known, self._known = self._known, counts.skips
        if known is None:
            return []
        return [_item(skip) for skip in counts.recent if skip.number > known]


def _item(skip: Skip) -> Item:
    run = skip.run
    data = SkipData(
        number=skip.number,
        schedule_id=skip.schedule_id,
        tick=iso(moment(run.tick)),
        count=run.count,
        outcome=run.outcome,
        reason=run.reason,
        task_id=run.task_id,
    )
    return Item(LiveEvent(type=EventType.SKIPPED.value, timestamp=iso(moment(skip.at)), data=data))
