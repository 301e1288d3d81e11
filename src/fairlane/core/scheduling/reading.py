"""Reading schedules, and what became of all ticks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core import firing, limits
from fairlane.core import schedule_history as history
from fairlane.core import tick_counts as counting
from fairlane.core.documents import Documents, Order
from fairlane.core.flow import Flow, reads
from fairlane.core.schedules import Schedule, is_schedule_id
from fairlane.core.scheduling.stored import COUNTS, KIND, checked_batch, place_of, schedule_of
from fairlane.core.tick_counts import TickCounts


class SchedulePage(msgspec.Struct, frozen=True):
    """Some schedules. `next_cursor`: where to continue, None at the end."""

    schedules: list[Schedule]
    next_cursor: str | None


@reads
def schedule_page(
    self: Documents, cursor: str | None = None, limit: int = limits.SCHEDULE_PAGE
) -> Flow[SchedulePage]:
    after = place_of(cursor)
    _, found = yield from self.list_documents(KIND, Order.OLDEST, limit, after)
    known = yield from history.joined(self, [schedule_of(each) for each in found])
    cursor = f"{found[-1].at}:{found[-1].id}" if len(found) == limit else None
    # Some stand there because somebody has to look at their tasks, long before their next tick.
    page = sorted((each for each in known if each is not None), key=firing.fires_at)
    return SchedulePage(page, cursor)


@reads
def schedules(self: Documents, schedule_ids: Sequence[str]) -> Flow[list[Schedule | None]]:
    checked_batch(schedule_ids)
    asked = [each for each in schedule_ids if is_schedule_id(each)]
    _, found = yield from self.read_documents(KIND, asked)
    known = yield from history.joined(self, [schedule_of(each) for each in found])
    by_id = dict(zip(asked, known, strict=True))
    return [by_id.get(each) for each in schedule_ids]


@reads
def tick_counts(self: Documents) -> Flow[TickCounts]:
    _, (stored,) = yield from self.read_documents(KIND, [COUNTS])
    return TickCounts() if stored is None else counting.decode(stored.value)
