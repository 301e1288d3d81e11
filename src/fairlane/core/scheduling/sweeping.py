"""Putting schedules in order: those that code declares no longer, or that stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from fairlane.core import firing, limits
from fairlane.core import schedule_history as history
from fairlane.core.documents import Document, Documents, Order, rewrites, write
from fairlane.core.errors import InvalidSchedule
from fairlane.core.firing import due_at
from fairlane.core.flow import Flow
from fairlane.core.priority import MICROSECONDS
from fairlane.core.schedules import Schedule, Source
from fairlane.core.scheduling.stored import KIND, OWNER, document_of, place_of, schedule_of


@rewrites
def sweep_schedules(self: Documents, cursor: str | None = None) -> Flow[str | None]:
    after = place_of(cursor)
    now, found = yield from self.list_documents(KIND, Order.OLDEST, limits.SCHEDULE_PAGE, after)
    known = {each.id: schedule for each in found if (schedule := schedule_of(each)) is not None}
    alive = yield from _alive(self, known.values())
    puts: list[Document] = []
    drops: list[Document] = []
    for each in found:
        schedule = known.get(each.id)
        if schedule is None:
            continue
        if _is_left_out(schedule, alive, now):
            drops.append(each)
            continue
        with suppress(InvalidSchedule):  # see `due`
            aligned = firing.align(schedule)
            # A process that could not read it has put it behind the others.
            if aligned != schedule or due_at(aligned) != each.at:
                puts.append(document_of(aligned, each))
    yield from history.drop(self, [each.id for each in drops])
    if puts or drops:
        yield from write(self, KIND, puts, drops)
    return f"{found[-1].at}:{found[-1].id}" if len(found) == limits.SCHEDULE_PAGE else None


def _alive(self: Documents, schedules: Iterable[Schedule]) -> Flow[dict[str, int]]:
    """Return when the applications of these schedules declared any of theirs last."""
    owners = {each.standing.owner for each in schedules if each.standing.source is Source.CODE}
    if not owners:
        return {}
    _, found = yield from self.read_documents(OWNER, sorted(owners))
    return {each.id: each.at for each in found if each is not None}


def _is_left_out(schedule: Schedule, alive: dict[str, int], now: int) -> bool:
    """Return whether its application declares its schedules without this one, for a day.

    An application that starts after a longer time declares them in several batches.
    """
    standing = schedule.standing
    if standing.source is not Source.CODE:
        return False
    declared = alive.get(standing.owner, standing.seen_at)
    return (
        declared - standing.seen_at >= limits.SCHEDULE_SECONDS * MICROSECONDS
        and now - declared >= limits.SCHEDULE_DECLARING_SECONDS * MICROSECONDS
    )
