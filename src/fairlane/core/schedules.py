"""Schedules as stores keep them: a definition nobody but the scheduler reads, and a next tick.

A tick is fired by whoever gets to move the schedule on from it (`Control.fire`), and the task it
submits carries an idempotency key made from schedule and tick: one firing per tick, however many
schedulers run and wherever one of them dies.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import moment, moment_or_none
from fairlane.core.text import NAME_RULE, is_name, shown


class NewSchedule(msgspec.Struct, frozen=True):
    """A schedule to be stored. `definition` is JSON; `next_at` (microseconds) is None when it is
    not to fire."""

    schedule_id: str
    definition: bytes
    next_at: int | None = None


class Schedule(msgspec.Struct, frozen=True):
    """A schedule as it stands. `version` grows with every change but those by firing."""

    schedule_id: str
    definition: bytes
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int


def schedule_of(
    schedule_id: str,
    definition: bytes,
    next_at: int | None,
    last_at: int | None,
    created_at: int,
    updated_at: int,
    version: int,
) -> Schedule:
    """A stored schedule as a user sees it."""
    times = (moment_or_none(next_at), moment_or_none(last_at))
    return Schedule(
        schedule_id, definition, *times, moment(created_at), moment(updated_at), version
    )


def key_of(schedule_id: str, tick: int) -> str:
    """The idempotency key of the task that a tick submits."""
    return f"schedule:{schedule_id}:{tick}"


def checked(schedule: NewSchedule) -> NewSchedule:
    """The schedule, if it can be stored."""
    if not is_name(schedule.schedule_id) or len(schedule.schedule_id) > _ID_LENGTH:
        raise InvalidSchedule(
            f"A schedule's id has {NAME_RULE}, and at most {_ID_LENGTH} of them. "
            f"Got {shown(schedule.schedule_id)}."
        )
    if len(schedule.definition) > limits.SCHEDULE_BYTES:
        raise InvalidSchedule(
            f"A schedule takes at most {limits.SCHEDULE_BYTES:,} bytes, not "
            f"{len(schedule.definition):,}."
        )
    return schedule


# Its id has to fit into an idempotency key, beside a tick.
_ID_LENGTH = 200
