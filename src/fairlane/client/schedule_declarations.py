"""Declaring the schedules of an application's code in its store, as flows.

The process that started last is right: it declares everything when it starts. Later it only repeats
what is still stored as it declared it, or is gone. So in a deployment a process with older code
takes nothing back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from fairlane.core import limits
from fairlane.core.errors import Conflict, InvalidInput
from fairlane.core.flow import Flow
from fairlane.core.schedules import NewSchedule, Schedule
from fairlane.core.store import Operations

logger = logging.getLogger("fairlane.schedules")


def declare(ops: Operations, owner: str, schedules: Iterable[NewSchedule]) -> Flow[None]:
    """Declare the schedules of an application. Those that are refused are logged.

    It says something without schedules too: that those which it declared before are gone.
    """
    for batch in _batches(schedules):
        try:
            yield ops.put_schedules(batch, owner=owner)
        except (InvalidInput, Conflict) as error:
            if len(batch) == 1:
                logger.warning("The schedule %s is not declared: %s", batch[0].schedule_id, error)
                continue
            for each in batch:  # one that is refused must not keep out the others
                yield from declare(ops, owner, [each])


def declare_again(ops: Operations, owner: str, schedules: Iterable[NewSchedule]) -> Flow[None]:
    """Declare those schedules again that nobody has declared otherwise meanwhile."""
    still: list[NewSchedule] = []
    for batch in _batches(schedules):
        found: list[Schedule | None] = yield ops.schedules([each.schedule_id for each in batch])
        still += [
            each
            for each, stored in zip(batch, found, strict=True)
            if stored is None or _is_declared(stored, each, owner)
        ]
    yield from declare(ops, owner, still)


def _is_declared(stored: Schedule, declared: NewSchedule, owner: str) -> bool:
    # Not by their fingerprints: those depend on encryption keys too.
    return stored.standing.owner == owner and _said(stored) == _said(declared)


def _said(schedule: Schedule | NewSchedule) -> tuple[object, ...]:
    return schedule.rule, schedule.template, schedule.payload, schedule.policy, schedule.note


def _batches(schedules: Iterable[NewSchedule]) -> Iterator[Sequence[NewSchedule]]:
    """Return the schedules in batches: one at least, which may be empty."""
    every = list(schedules)
    for start in range(0, max(len(every), 1), limits.SCHEDULE_PAGE):
        yield every[start : start + limits.SCHEDULE_PAGE]
